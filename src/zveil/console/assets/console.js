// What the browser does by itself: numbers in charts, files, light and dark, a server that is gone.
"use strict";

const zveil = {
  // 1234567 as 1.23M: for the axes of charts.
  short(value) {
    if (value === null || value === undefined) return "–";
    for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))}${unit}`;
    return String(Number(value.toPrecision(3)));
  },
  bytes(value) {
    if (value === null || value === undefined) return "–";
    let unit = "B";
    for (const next of ["KiB", "MiB", "GiB"]) if (value >= 1024) [value, unit] = [value / 1024, next];
    return `${Number(value.toPrecision(3))} ${unit}`;
  },
  percent: (value) => (value === null || value === undefined ? "–" : `${Number(value.toPrecision(3))} %`),
  ms: (value) => (value === null || value === undefined ? "–" : `${Number(value.toPrecision(3))} ms`),

  // Sends a file to the server as it is; what is wrong with that is told beside the field.
  async send(id) {
    const input = document.getElementById(id);
    const file = input.files[0];
    const told = document.getElementById(input.dataset.told);
    if (!file) return;
    const largest = Number(input.dataset.largest);
    told.hidden = true;
    let problem = "";
    if (file.size > largest) problem = `The file is larger than ${zveil.bytes(largest)}.`;
    else {
      input.disabled = true;
      try {
        const answer = await fetch(`/console/files/${input.dataset.ticket}?name=${encodeURIComponent(file.name)}`, {
          method: "POST",
          body: file,
          headers: { "Content-Type": "application/octet-stream" },
        });
        if (!answer.ok) problem = await answer.text();
      } catch {
        problem = "The file did not get to the server.";
      }
      input.disabled = false;
    }
    input.value = "";
    if (problem) {
      told.textContent = problem;
      told.hidden = false;
    }
  },

  // Light, dark, or as the system has it; remembered for a year.
  look(choice) {
    document.cookie = `zveil-look=${choice}; path=/; max-age=31536000; samesite=strict`;
    setDark({ dark: true, light: false }[choice] ?? null);
    for (const button of document.querySelectorAll("[data-look]")) {
      button.dataset.look = choice;
      button.textContent = { dark: "Dark", light: "Light" }[choice] ?? "Auto";
    }
  },

  async copy(button) {
    const text = document.getElementById(button.dataset.copies).textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without TLS there is no clipboard: mark the text, for the keyboard to copy.
      getSelection().selectAllChildren(document.getElementById(button.dataset.copies));
      button.textContent = "Marked: copy it with the keyboard";
      return;
    }
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = before), 1500);
  },
};

// Sliders show what they are set to at once, and say it to those who do not see it.
zveil.shown = (slider, text) => {
  text ??= JSON.parse(slider.dataset.texts)[Number(slider.value)];
  slider.setAttribute("aria-valuetext", text);
  document.getElementById(`${slider.id}-is`).textContent = text;
};
zveil.move = (name, place, text) => {
  const slider = document.getElementById(name);
  slider.value = place;
  zveil.shown(slider, text);
};

document.addEventListener("input", (event) => {
  if (event.target.matches?.("input[type=range][data-texts]")) zveil.shown(event.target);
});

document.addEventListener("click", (event) => {
  const look = event.target.closest?.("[data-look]");
  if (look) zveil.look({ auto: "light", light: "dark", dark: "auto" }[look.dataset.look] ?? "light");
  const copies = event.target.closest?.("[data-copies]");
  if (copies) zveil.copy(copies);
});

// A server that is back may have forgotten who is logged in: then there is no socket to say so.
setInterval(async () => {
  if (document.getElementById("popup")?.ariaHidden !== "false") return;
  try {
    const answer = await fetch("/console/session", { redirect: "manual" });
    if (answer.type === "opaqueredirect") location.href = "/login";
  } catch {
    // Still gone.
  }
}, 3000);
