from utils import must_answer


def test_completion():
    must_answer("completion", 200)


def test_incorrect_api_key():
    must_answer("key", 401)


def test_props():
    must_answer("props", 200)
