//! What is looked for: paths of keys, as a tree of the objects they lead through.

use super::layout::Role;

pub(super) struct Paths {
    /// The names looked for in each object. The first is the line itself.
    objects: Vec<Vec<(Vec<u8>, Role)>>,
}

impl Paths {
    pub(super) fn new(paths: &[Vec<String>]) -> Self {
        let mut tree = Self { objects: vec![Vec::new()] };
        for (cell, path) in paths.iter().enumerate() {
            if let Some((name, above)) = path.split_last()
                && let Some(object) = tree.enter(above)
            {
                tree.objects[object].push((name.as_bytes().to_vec(), Role::Cell(cell as u32)));
            }
        }
        tree
    }

    /// The object at a path; `None` if another path ends on the way, which callers rule out.
    fn enter(&mut self, path: &[String]) -> Option<usize> {
        let mut object = 0;
        for name in path {
            object = match self.role(object as u32, name.as_bytes()) {
                Role::Inside(inner) => inner as usize,
                Role::Cell(_) => return None,
                Role::Other => {
                    let inner = self.objects.len();
                    self.objects.push(Vec::new());
                    let role = Role::Inside(inner as u32);
                    self.objects[object].push((name.as_bytes().to_vec(), role));
                    inner
                }
            };
        }
        Some(object)
    }

    pub(super) fn objects(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn role(&self, object: u32, key: &[u8]) -> Role {
        let names = self.objects.get(object as usize).map(Vec::as_slice).unwrap_or_default();
        names.iter().find(|(name, _)| name == key).map_or(Role::Other, |(_, role)| *role)
    }
}
