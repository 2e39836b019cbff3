/**
 * The server of a page with `<bailiwick-inbox>`: it serves the page under a strict policy, and passes requests below
 * `/api` on to the program with a visitor's credential. Its network can be held or gone.
 */
import { Effect } from "effect"
import { request, type ServerResponse } from "node:http"
import { serve } from "../../services/platform/Outbound/LoopbackServers.ts"
import { inboxScript, inboxSnippets } from "../../support/InboxPackage.ts"

const policy = "default-src 'none'; script-src 'self'; style-src 'none'; connect-src 'self'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'none'"

/** The lines that the README puts into a page. */
const [script, element] = inboxSnippets("html")[0]!.trim().split("\n") as [string, string]

const page = (element: string) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>A product</title>
${script}</head>
<body><main><h1>A product</h1><p>Its text.</p>${element}</main></body></html>`

export interface Passed {
  readonly method: string
  readonly path: string
  readonly lastEventId: string | undefined
}

export const inboxSite = Effect.fnUntraced(function* (program: () => string) {
  const code = yield* Effect.promise(inboxScript)
  const state = { credential: {} as Readonly<Record<string, string>>, way: "open" as "open" | "held" | "gone" }
  const passed: Array<Passed> = []
  const open = new Set<ServerResponse>()
  const waiting: Array<() => void> = []
  const { port } = yield* serve((asked, answer) => {
    const { headers, method = "GET", url = "/" } = asked
    const said = (type: string, body: string | Uint8Array) =>
      answer.writeHead(200, { "content-type": type, "content-security-policy": policy }).end(body)
    if (url === "/inbox.js") return void said("text/javascript", code)
    if (!url.startsWith("/api/v1/notifications")) {
      return void said("text/html", page(url.startsWith("/bare") ? "" : element))
    }
    if (state.way === "gone") return void asked.socket.destroy()
    passed.push({ method, path: url.slice(4), lastEventId: headers["last-event-id"] as string | undefined })
    open.add(answer.on("close", () => open.delete(answer)))
    const { cookie: _, ...own } = headers
    const pass = () => {
      const options = { method, headers: { ...own, ...state.credential }, agent: false }
      const sent = request(program() + url.slice(4), options, (got) => {
        got.on("error", () => answer.destroy()).pipe(answer.writeHead(got.statusCode!, got.headers))
      })
      // No pipeline of streams: Deno's throws where the answer's receiver is already gone.
      answer.on("close", () => sent.destroy())
      asked.pipe(sent.on("error", () => answer.destroy()))
    }
    if (state.way === "held") waiting.push(pass)
    else pass()
  })
  return {
    origin: `http://127.0.0.1:${port}`,
    /** Requests to the program, in their order. */
    passed,
    /** The visitor's credential: headers of every request. */
    signIn: (credential: Readonly<Record<string, string>>) => void (state.credential = credential),
    /** Keeps requests until `mend`. */
    hold: () => void (state.way = "held"),
    /** Ends what is open, and each new request, until `mend`. */
    refuse: () => {
      state.way = "gone"
      for (const answer of open) answer.destroy()
    },
    mend: () => {
      state.way = "open"
      for (const pass of waiting.splice(0)) pass()
    },
  }
})

export type InboxSite = Effect.Success<ReturnType<typeof inboxSite>>
