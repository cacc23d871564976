# The example of docs/how-to/python.md. It needs nothing but Python's standard library.
import http.client
import json
import os
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("URL", "http://127.0.0.1:8080")
KEY = os.environ["KEY"]


class Problem(Exception):
    """The API has rejected a request. Programs should rely on `code`."""

    def __init__(self, body):
        super().__init__(f"{body['code']}: {body.get('detail', body['title'])}")
        self.code = body["code"]
        self.errors = body.get("errors", [])


def send(method, path, body=None, key=None, retry_for=30):
    """Sends a request. Repeats it for 30 s if there is no response or the API asks to try later."""
    give_up_at = time.monotonic() + retry_for
    headers = {"Authorization": f"Bearer {KEY}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    if key is not None:
        headers["Idempotency-Key"] = f'"{key}"'
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, headers, method=method)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=40) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            is_problem = error.headers.get_content_type() == "application/problem+json"
            pause = float(error.headers.get("Retry-After", 1))
            is_temporary = error.code in (408, 429, 502, 503, 504)
            if not is_temporary or time.monotonic() + pause > give_up_at:
                raise Problem(json.load(error)) if is_problem else error
        except (OSError, http.client.HTTPException):  # no response, or only a part of one
            pause = 1
            if time.monotonic() + pause > give_up_at:
                raise
        time.sleep(pause)


def enqueue(task, input, key=None, **options):
    """Enqueues a task. The key makes repeats safe: calls with the same key and task store it once."""
    body = {"task": task, "input": input, **options}
    return send("POST", "/v1/tasks", body, key or str(uuid.uuid4()))


def wait(id):
    """Waits for a task to end, and returns it."""
    while True:
        task = send("GET", f"/v1/tasks/{id}?wait=30s")
        if task["status"] in ("completed", "dead", "cancelled", "expired"):
            return task


accepted = enqueue("math.factorial", {"n": 20}, tags=["batch:7"])
task = wait(accepted["id"])
print(task["status"], task["output"])

try:
    enqueue("math.factorial", {"n": -1})
except Problem as problem:
    print(problem)

tasks = [{"task": "math.factorial", "input": {"n": n}} for n in (3, 4, "five")]
for result in send("POST", "/v1/tasks/bulk", {"tasks": tasks}, key=str(uuid.uuid4()))["results"]:
    print(result["error"]["detail"] if "error" in result else result["status"])
