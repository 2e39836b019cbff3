/**
 * Probes whether a nats-server answers. A server whose disk is full, or whose process is frozen, still accepts
 * connections (the system does that for it) and sends nothing, so a connection alone proves nothing.
 */
import { Effect } from "effect"
import { connect } from "node:net"

/** `silent`: the server accepted the connection and did not answer. */
export type Answer = "answers" | "silent" | "away"

export interface Probed {
  readonly host: string
  readonly port: number
  readonly deadlineMillis: number
  /** The fields of CONNECT. With them JetStream is asked as well, unless the server requires TLS. */
  readonly credential?: Readonly<Record<string, string>>
}

const inbox = "_INBOX.probe"

const questions = (credential: Readonly<Record<string, string>>) =>
  `CONNECT ${JSON.stringify({ verbose: false, pedantic: false, name: "bailiwick probe", ...credential })}\r\n` +
  `SUB ${inbox} 1\r\nPUB $JS.API.INFO ${inbox} 0\r\n\r\n`

/** Probes a server; a refusal is an answer, too. */
export const ask = ({ credential, deadlineMillis, host, port }: Probed): Effect.Effect<Answer> =>
  Effect.callback<Answer>((resume) => {
    let taken = false
    let heard = ""
    const socket = connect({ host, port })
    const end = (answer: Answer) => {
      clearTimeout(timer)
      socket.destroy()
      resume(Effect.succeed(answer))
    }
    // Where this process itself was frozen, data that came meanwhile is read before it counts as silence.
    let timer = setTimeout(() => {
      timer = setTimeout(() => end(taken ? "silent" : "away"), 100)
    }, deadlineMillis)
    socket.once("connect", () => {
      taken = true
    })
    socket.on("data", (chunk) => {
      const greeted = heard.startsWith("INFO ")
      heard += String(chunk)
      if (/^-ERR|\nMSG |\n-ERR/m.test(heard)) return end("answers")
      if (greeted || !heard.startsWith("INFO ")) return
      if (credential === undefined || /"tls_required":true/.test(heard)) return end("answers")
      socket.write(questions(credential))
    })
    socket.once("error", () => end(taken ? "silent" : "away"))
    socket.once("close", () => end(taken ? "silent" : "away"))
    return Effect.sync(() => {
      clearTimeout(timer)
      socket.destroy()
    })
  })
