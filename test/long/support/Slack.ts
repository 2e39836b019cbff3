/** A Slack that accepts everything and keeps the messages. */
import { Effect } from "effect"
import { serve } from "../../services/platform/Outbound/LoopbackServers.ts"

export const slack = Effect.gen(function* () {
  const said: Array<string> = []
  const { port } = yield* serve((request, response) => {
    let body = ""
    request.on("data", (chunk) => body += chunk)
    request.on("end", () => {
      said.push(JSON.parse(body).text)
      response.writeHead(200).end("ok")
    })
  })
  return { said, url: `http://localhost:${port}/services/x` }
})
