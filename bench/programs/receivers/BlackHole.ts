/** Receivers that take a request and never answer. */
import { createServer } from "node:http"
import process from "node:process"
import { listenBelow, say } from "../ChildProtocol.ts"

const ports = await Promise.all(
  Array.from({ length: 4 }, () => listenBelow(createServer((request) => request.resume()))),
)
process.stdin.resume().on("close", () => process.exit(0))
say("ready", { ports })
