/** Receivers that refuse the first attempt of every tenth delivery and accept everything else. */
import { createServer } from "node:http"
import process from "node:process"
import { listenBelow, say } from "../ChildProtocol.ts"

const refused = (id: string, attempt: string) => attempt === "1" && Number.parseInt(id.slice(-4), 16) % 10 === 0

const server = () =>
  createServer((request, response) => {
    request.resume()
    request.once("end", () => {
      const { "webhook-id": id, "x-webhook-attempt": attempt } = request.headers
      response.writeHead(refused(String(id), String(attempt)) ? 503 : 200, { "content-length": "0" }).end()
    })
  })

const ports = await Promise.all(Array.from({ length: 4 }, () => listenBelow(server())))
process.stdin.resume().on("close", () => process.exit(0))
say("ready", { ports })
