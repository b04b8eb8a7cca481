"""Options that every suite is given; none of these tests uses them."""


def pytest_addoption(parser):
    parser.addoption("--programs")
