"""A small service with the console in it, for the tests: it decides events by real gates."""

import argparse
import asyncio
import contextlib
import json
import time

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse

from zveil.console import mount
from zveil.policy import Policy
from zveil.serve.monitor import Figures, Latencies, Monitor, Part

POLICY = Policy.of(time="ts", user="uid", attributes=["host"], z=3, window="1h")


class Token:
    def __init__(self, rights):
        self.rights = rights

    def may(self, right):
        return right in self.rights


class Tokens:
    def find(self, secret):
        rights = {"reader": {"read"}, "writer": {"write"}}.get(secret)
        return None if rights is None else Token(rights)


class Engine:
    def __init__(self):
        self.gate = POLICY.gates()[0]
        self.latencies = Latencies()
        self.bad = 0
        self.lines = 0
        self.monitor = Monitor(self.figures)

    def decide(self, body):
        for line in body.splitlines():
            began = time.perf_counter()
            self.lines += 1
            try:
                record = json.loads(line)
                fields = record["ts"], record["uid"], record["host"]
            except (ValueError, KeyError):
                self.bad += 1
                continue
            self.gate.observe(int(fields[0] * 1e9), *fields[1:])
            self.latencies.add(time.perf_counter() - began)

    def figures(self):
        stats = self.gate.stats()
        veiled = {"few_users": stats.veiled - stats.late, "late": stats.late}
        part = Part(
            attribute="host", z=3, window_ns=3600 * 10**9, observed=stats.observed,
            released=stats.released, veiled=veiled, refused=0, attributes=stats.attributes,
            state_bytes=stats.bytes,
        )  # fmt: skip
        return Figures(
            at=time.time(), policy=POLICY.fingerprint, lines=self.lines, observed=stats.observed,
            released=stats.released, veiled=veiled, late=stats.late,
            bad={"json": self.bad}, attributes=stats.attributes, state_bytes=stats.bytes,
            latency_ms=self.latencies.quantiles_ms(), parts=(part,),
        )  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--tokens", action="store_true")
    parser.add_argument("--released")
    parser.add_argument("--upload", default="256MiB")
    given = parser.parse_args()
    engine = Engine()

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async def tick():
            while True:
                engine.monitor.tick()
                await asyncio.sleep(1)

        task = asyncio.create_task(tick())
        yield
        task.cancel()

    app = FastAPI(lifespan=lifespan)

    @app.post("/v1/observations")
    async def observations(request: Request):
        engine.decide(await request.body())
        return PlainTextResponse("")

    mount(
        app,
        monitor=engine.monitor,
        policy=POLICY,
        tokens=Tokens() if given.tokens else None,
        released=given.released,
        upload=given.upload,
    )
    uvicorn.run(app, port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
