/** Bare servers of Server-Sent Events: a header, a greeting, and a heartbeat every 15 s from one timer. */
import { createServer, type ServerResponse } from "node:http"
import { listenBelow, say, variable } from "../ChildProtocol.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const [greeting, heartbeat] = [bytes("retry: 2000\n\n"), bytes(":\n\n")]
const headers = { "content-type": "text/event-stream", "cache-control": "no-store" }

interface DenoServer {
  readonly serve: (
    options: { readonly hostname: string; readonly port: number; readonly onListen: () => void },
    handler: () => Response,
  ) => unknown
}

const overNode = async () => {
  const open = new Set<ServerResponse>()
  const server = createServer((_, response) => {
    response.writeHead(200, headers)
    response.write(greeting)
    open.add(response)
    response.once("close", () => open.delete(response))
  })
  setInterval(() => open.forEach((response) => response.write(heartbeat)), 15_000)
  return await listenBelow(server)
}

const overDeno = () => {
  const open = new Set<ReadableStreamDefaultController<Uint8Array>>()
  setInterval(() => open.forEach((controller) => controller.enqueue(heartbeat)), 15_000)
  const handler = () => {
    let own: ReadableStreamDefaultController<Uint8Array>
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller
        open.add(controller)
        controller.enqueue(greeting)
      },
      cancel: () => void open.delete(own),
    })
    return new Response(body, { headers })
  }
  const port = 20_000 + Math.floor(Math.random() * 12_000)
  const { serve } = Reflect.get(globalThis, "Deno") as DenoServer
  serve({ hostname: "127.0.0.1", port, onListen: () => {} }, handler)
  return port
}

say("ready", { port: variable("SERVER") === "node:http" ? await overNode() : overDeno() })
