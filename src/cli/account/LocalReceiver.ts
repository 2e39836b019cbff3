/** The receiver of `listen`: a server on a port of this machine, which takes deliveries as an endpoint of a webhook does. */
import { Effect } from "effect"
import { Buffer } from "node:buffer"
import { request } from "node:http"

/** As long as an endpoint has for its answer. */
const answerMillis = 10_000

/** The receiver's status; null where no server listens on the port. A failure is a text that says what came instead. */
export const postTo = (port: number, path: string, headers: Readonly<Record<string, string>>, body: string) =>
  Effect.callback<number | null, string>((resume) => {
    const sending = request({
      host: "127.0.0.1",
      port,
      path,
      method: "POST",
      timeout: answerMillis,
      headers: { ...headers, "content-length": String(Buffer.byteLength(body)) },
    }, (response) => {
      // The answer's body is of no interest; unread it would hold the connection.
      response.resume()
      resume(Effect.succeed(response.statusCode ?? 0))
    })
    sending.on("timeout", () => sending.destroy(new Error(`no answer within ${answerMillis / 1_000} s`)))
    sending.on(
      "error",
      (error: NodeJS.ErrnoException) =>
        resume(error.code === "ECONNREFUSED" ? Effect.succeed(null) : Effect.fail(error.message)),
    )
    sending.end(body)
    return Effect.sync(() => sending.destroy())
  })
