/**
 * A real SMTP server on loopback that behaves as a test tells it, message by message: accepts, refuses at any step,
 * cuts the connection, or falls silent.
 */
import { Effect, Queue } from "effect"
import type { AddressInfo } from "node:net"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { readEml, type ReadMail } from "../../src/embedded/Eml.ts"

export type Step = "connect" | "auth" | "mail" | "rcpt" | "data"

/** The server's behaviour at one step of a message; it accepts all others. */
export type Behaviour =
  | { readonly at: Step; readonly answer: number }
  | { readonly at: "rcpt" | "data"; readonly does: "cut" | "silence" }

export interface Taken {
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly raw: string
  readonly mail: ReadMail
  /** Whether it was answered with 250. */
  readonly accepted: boolean
}

const words = "see https://server.example/words?you=sent"

const refusal = (code: number) =>
  Object.assign(new Error(code >= 500 ? `5.7.1 no, ${words}` : `4.3.0 not now, ${words}`), { responseCode: code })

export const testSmtp = (options: Partial<SMTPServerOptions> = {}) =>
  Effect.gen(function* () {
    const taken = yield* Queue.unbounded<Taken>()
    const coming: Array<Behaviour> = []
    /** The message that each connection is at, decided when it begins. */
    const at = (step: Step): Behaviour | undefined => coming[0]?.at === step ? coming.shift() : undefined

    const server: SMTPServer = new SMTPServer({
      disabledCommands: ["STARTTLS"],
      authOptional: true,
      closeTimeout: 100,
      ...options,
      onConnect: (_session, done) => end(at("connect"), "", done),
      onAuth: (_auth, session, done) => end(at("auth"), session.id, (error) => done(error, { user: "u" })),
      onMailFrom: (_address, session, done) => end(at("mail"), session.id, done),
      onRcptTo: (_address, session, done) => end(at("rcpt"), session.id, done),
      onData: (stream, session, done) => {
        const chunks: Array<Uint8Array> = []
        stream.on("data", (chunk: Uint8Array) => chunks.push(chunk))
        stream.on("end", () => {
          const behaviour = at("data")
          const bytes = Buffer.concat(chunks)
          const { mailFrom, rcptTo } = session.envelope
          Queue.offerUnsafe(taken, {
            from: mailFrom === false ? "" : mailFrom.address,
            to: rcptTo.map(({ address }) => address),
            raw: bytes.toString("latin1"),
            mail: readEml(bytes),
            accepted: behaviour === undefined,
          })
          end(behaviour, session.id, done)
        })
      },
    })
    const cut = (id: string) => {
      for (const connection of server.connections) if (id === "" || connection.id === id) connection._socket.destroy()
    }
    const end = (behaviour: Behaviour | undefined, id: string, done: (error?: Error | null) => void) => {
      if (behaviour === undefined) done()
      else if ("answer" in behaviour) done(refusal(behaviour.answer))
      else if (behaviour.does === "cut") cut(id)
    }
    server.on("error", () => {})
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          cut("")
        }),
    )
    const { port } = server.server.address() as AddressInfo
    return {
      port,
      url: `smtp://127.0.0.1:${port}`,
      taken,
      /** Sets the behaviour for the next messages, one each, in order. */
      behave: (...behaviours: ReadonlyArray<Behaviour>) => void coming.push(...behaviours),
      connections: () => server.connections.size,
      /** How many of these behaviours are left. */
      coming: () => coming.length,
      /** Ends every connection, as a restarted server does. */
      cut: () => cut(""),
    }
  })
