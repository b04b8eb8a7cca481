"""Accepts the options that every suite is given; these tests use none of them."""


def pytest_addoption(parser):
    parser.addoption("--programs")
