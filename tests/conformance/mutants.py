"""Generates documents that differ from well-known ones in a few values, keys or items."""
import copy
import random


class Mutator:
    """Mutates the well-known `documents`: inserts `odd` values and `keys`. With `cases`, also changes the letter
    case of names."""

    def __init__(self, seed: int, documents: list[dict], odd: list, keys: list[str],
                 cases: bool = False):
        self.random = random.Random(seed)
        self.documents, self.odd, self.keys, self.cases = documents, odd, keys, cases

    def places(self, tree) -> list[tuple]:
        """Every (container, key) in the tree."""
        items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else []
        return [place for key, value in items for place in [(tree, key), *self.places(value)]]

    def next(self) -> dict:
        tree = copy.deepcopy(self.random.choice(self.documents))
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 3])):
            if not (places := self.places(tree)):
                break
            container, key = self.random.choice(places)
            match self.random.randrange(4 + self.cases):
                case 0:
                    container[key] = copy.deepcopy(self.random.choice(self.odd))
                case 1:
                    del container[key]
                case 2 if isinstance(container, list):
                    container.append(copy.deepcopy(container[key]))
                case 2:
                    container[self.random.choice(self.keys)] = copy.deepcopy(container[key])
                case 4 if isinstance(container, dict):
                    changed = self.random.choice([str.upper, str.lower, str.capitalize])(key)
                    container[changed] = container.pop(key)
                case _:
                    other, source = self.random.choice(places)
                    container[key] = copy.deepcopy(other[source]) if source in range(len(other)) or source in other else None
        return tree
