"""The talk of a client with tests/interop/run, as client.mjs has it: one JSON object a line."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

options = dict(word.split("=", 1) for word in sys.argv[1:])
endpoint = f"{options['url']}/{'whip' if options['role'] == 'publish' else 'whep'}/{options['stream']}"
codec = options["codec"].upper()
FRAMES, SOUNDS = 45, 50


def say(work):
    """The answer to a command; False when it could not be done."""
    try:
        print(json.dumps({"ok": True, **(work() or {})}), flush=True)
        return True
    except Exception as error:  # pylint: disable=broad-except
        print(json.dumps({"ok": False, "why": str(error) or repr(error)}), flush=True)
        return False


def serve(begin, commands):
    """begin() connects and returns the facts; ends the process."""
    if not say(begin):
        os._exit(1)
    for line in sys.stdin:
        command = line.strip()
        good = say(commands[command])
        if command == "end":
            os._exit(0 if good else 1)
    os._exit(0)
