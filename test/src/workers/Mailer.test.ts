import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Logger, Queue, Redacted, Schedule, Scope } from "effect"
import { inject } from "vitest"
import { WakeUps } from "../../../services/platform/messaging/WakeUps.ts"
import { Bus } from "../../../services/platform/messaging/Bus.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { ClockHealth } from "../../../services/platform/database/DatabaseClock.ts"
import { Mails, mailsTopic, type MailTemplate, MailTemplates } from "../../../services/platform/mail/Mails.ts"
import { MailTransport } from "../../../services/platform/mail/MailTransport.ts"
import { Outbox } from "../../../services/platform/messaging/Outbox.ts"
import { Mailer } from "../../../src/workers/Mailer.ts"
import { Relay } from "../../../src/workers/Relay.ts"
import { platform, ready, until, withShared } from "../../services/platform/messaging/OutboxFixture.ts"
import { start } from "../../support/Processes.ts"
import { testSmtp } from "../../support/TestSmtp.ts"

const secret = "https://mail.example/transfers/accept/SECRET-TOKEN"

const says = (kind: string): MailTemplate => ({
  kind,
  render: ({ args, subjectId }) =>
    Effect.succeed({ subject: `About ${subjectId}`, text: `${args["n"]} ${secret}`, html: `<p>${secret}</p>` }),
})

const templates: ReadonlyArray<MailTemplate> = [
  says("told"),
  { kind: "over", render: () => Effect.succeed(null) },
  { kind: "broken", render: () => Effect.die(new Error(`cannot render ${secret}`)) },
]

const from = { name: "Bailiwick", address: "no-reply@mail.example" }

/** A Mailer that counts as a process of its own. */
const mailer = (brokerUrl: Redacted.Redacted, transport: Layer.Layer<MailTransport>, kinds = templates) =>
  Layer.fresh(Mailer.layer.pipe(
    Layer.provide(Layer.succeed(MailTemplates, kinds)),
    Layer.provide(transport),
    Layer.provide(Layer.fresh(Mails.layer.pipe(Layer.provideMerge(platform(brokerUrl))))),
  ))

const smtpTo = (url: string) => MailTransport.smtp({ url: Redacted.make(url), from, connections: 5 })

const mail = (n: number, kind = "told") => ({
  kind,
  subjectId: `d${n}`,
  recipient: `r${n}@example.com`,
  args: { n: String(n) },
})

interface Row {
  readonly id: string
  readonly state: string
  readonly attempts: number
  readonly doubts: number
  readonly message_id: string | null
  readonly last_error: string | null
  readonly not_before: Date | null
}

const rows = Effect.flatMap(Database, ({ sql }) => sql<Row>`select * from mails order by id`)
const all = (state: string) => until(Effect.map(rows, (mails) => mails.every((row) => row.state === state)))

/** Makes the mail due now. */
const due = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`update mails set not_before = to_timestamp(0) where not_before is not null and claim is null`
  yield* (yield* WakeUps).notify(mailsTopic)
})

const fixture = <A, E>(
  use: (fixture: {
    readonly url: Redacted.Redacted
    readonly mails: Mails["Service"]
    readonly smtp: Effect.Success<ReturnType<typeof testSmtp>>
  }) => Effect.Effect<A, E, Database | WakeUps | Bus | Outbox | Scope.Scope>,
) =>
  withShared((url) =>
    Effect.gen(function* () {
      const smtp = yield* testSmtp()
      const mails = Context.get(yield* Layer.build(Mails.layer), Mails)
      yield* ready
      return yield* use({ url, mails, smtp })
    })
  )

describe("Mailer", () => {
  it.live("sends each mail once, however many workers hear of it and how often", () =>
    fixture(({ mails, smtp, url }) =>
      Effect.gen(function* () {
        yield* Layer.build(Relay.layer)
        yield* Layer.build(mailer(url, smtpTo(smtp.url)))
        yield* Layer.build(mailer(url, smtpTo(smtp.url)))
        yield* mails.add(...Array.from({ length: 40 }, (_, n) => mail(n)))
        yield* all("sent")
        yield* until(Effect.map(
          Effect.flatMap(Database, ({ sql }) => sql`select from outbox where published_at is null`),
          (unpublished) => unpublished.length === 0,
        ))
        const taken = yield* Queue.takeAll(smtp.taken)
        assert.sameMembers(taken.flatMap(({ to }) => to), Array.from({ length: 40 }, (_, n) => `r${n}@example.com`))
        const sent = yield* rows
        assert.sameMembers(taken.map(({ mail }) => mail.messageId), sent.map(({ id }) => `<${id}@mail.example>`))
        for (const row of sent) assert.deepInclude(row, { attempts: 1, not_before: null, last_error: null })
      })
    ))

  it.live("follows announcements even without its scan", () =>
    fixture(({ mails, smtp, url }) =>
      Effect.gen(function* () {
        const subjects = Array.from({ length: 12 }, (_, n) => `About d${n}`)
        yield* mails.add(...subjects.map((_, n) => mail(n)))
        yield* Layer.build(Relay.layer)
        yield* Layer.build(
          Layer.provide(
            mailer(url, smtpTo(smtp.url)),
            // A process with a wrong clock does not scan.
            Layer.succeed(ClockHealth, { read: Effect.succeed({ healthy: false, offsetMillis: 0 }) }),
          ),
        )
        const taken = yield* Effect.forEach(subjects, () => Queue.take(smtp.taken))
        assert.sameMembers(taken.map(({ mail }) => mail.subject), subjects)
      })
    ))

  it.live("retries a mail refused for now, and gives up one refused for good", () =>
    fixture(({ mails, smtp, url }) =>
      Effect.gen(function* () {
        yield* Layer.build(mailer(url, smtpTo(smtp.url)))
        smtp.behave({ at: "data", answer: 451 })
        yield* mails.add(mail(1))
        yield* until(Effect.map(rows, ([row]) => row!.last_error !== null))
        const [waiting] = yield* rows
        assert.deepInclude(waiting, { state: "pending", attempts: 1, doubts: 0, last_error: "EMESSAGE DATA 451 4.3.0" })
        assert.approximately(waiting!.not_before!.getTime(), Date.now() + 60_000, 30_000)
        yield* due
        yield* all("sent")
        assert.deepStrictEqual((yield* Queue.takeAll(smtp.taken)).map(({ accepted }) => accepted), [false, true])
        smtp.behave({ at: "rcpt", answer: 550 })
        yield* mails.add(mail(2))
        yield* until(Effect.map(rows, ([, row]) => row!.state === "failed"))
        assert.deepInclude((yield* rows)[1], {
          attempts: 1,
          not_before: null,
          last_error: "EENVELOPE RCPT TO 550 5.7.1",
        })
      })
    ))

  it.live("repeats a mail cut off after DATA once, ten minutes later, as the same message", () =>
    fixture(({ mails, smtp, url }) =>
      Effect.gen(function* () {
        yield* Layer.build(mailer(url, smtpTo(smtp.url)))
        smtp.behave({ at: "data", does: "cut" }, { at: "data", does: "cut" })
        yield* mails.add(mail(1))
        yield* all("unknown")
        const [first] = yield* rows
        assert.approximately(first!.not_before!.getTime(), Date.now() + 600_000, 30_000)
        assert.strictEqual((yield* mails.diagnostics).unknown, 1)
        yield* due
        yield* until(Effect.map(rows, ([row]) => row!.doubts === 2))
        assert.deepInclude((yield* rows)[0], { state: "unknown", not_before: null })
        yield* due
        yield* mails.add(mail(2))
        yield* until(Effect.map(rows, ([, row]) => row!.state === "sent"))
        const taken = yield* Queue.takeAll(smtp.taken)
        const [one, repeat, other] = taken.map(({ mail }) => mail)
        assert.strictEqual(taken.length, 3)
        assert.strictEqual(one!.messageId, repeat!.messageId)
        assert.strictEqual(one!.date, repeat!.date)
        assert.notStrictEqual(other!.messageId, one!.messageId)
      })
    ))

  for (const dies of ["before", "after"] as const) {
    it.live(
      `a process killed ${dies} it hands a message over leaves one more attempt under the same Message-ID`,
      () =>
        fixture(({ mails, smtp, url }) =>
          Effect.gen(function* () {
            const { sql } = yield* Database
            const [id] = yield* mails.add(mail(1))
            const [at] = yield* sql<{ name: string }>`select current_database()::text as name`
            const database = new URL(inject("postgresAppUrl"))
            database.pathname = `/${at!.name}`
            const env = { DATABASE_URL: database.href, NATS_URL: Redacted.value(url), SMTP_URL: smtp.url, DIES: dies }
            const program = yield* start({ module: "test/src/workers/fixtures/MailerProgram.ts", env })
            assert.isNull(yield* program.exited, program.output())
            // The killed process left the mail claimed and marked, with its Message-ID, before it was sent.
            const messageId = `<${id}@mail.example>`
            assert.deepInclude((yield* rows)[0], { state: "pending", doubts: 0, message_id: messageId })
            yield* sql`update mails set lease_until = lease_until - interval '1 hour'`
            yield* Layer.build(mailer(url, smtpTo(smtp.url)))
            yield* until(Effect.map(rows, ([row]) => row!.state !== "pending"))
            yield* all("sent")
            assert.deepInclude((yield* rows)[0], { doubts: 1, message_id: messageId })
            const taken = yield* Queue.takeAll(smtp.taken)
            assert.strictEqual(taken.length, dies === "before" ? 1 : 2)
            for (const { mail } of taken) assert.strictEqual(mail.messageId, messageId)
          })
        ),
      120_000,
    )
  }

  it.live("drops a mail without content, lets a broken template wait alone, and leaves unknown kinds", () =>
    fixture(({ mails, smtp, url }) =>
      Effect.gen(function* () {
        yield* mails.add(mail(1, "newer"), mail(2, "broken"), mail(3, "over"), mail(4))
        yield* Layer.build(mailer(url, smtpTo(smtp.url)))
        yield* until(Effect.map(rows, (found) => found[3]!.state === "sent" && found[2]!.state === "dropped"))
        yield* until(Effect.map(rows, (found) => found[1]!.last_error !== null))
        const [newer, broken] = yield* rows
        assert.deepInclude(newer, { state: "pending", attempts: 0 })
        assert.deepInclude(broken, { state: "pending", attempts: 1, doubts: 0, last_error: "its template failed" })
        yield* Layer.build(mailer(url, smtpTo(smtp.url), [says("newer")]))
        yield* until(Effect.map(rows, ([row]) => row!.state === "sent"))
        assert.strictEqual((yield* Queue.takeAll(smtp.taken)).length, 2)
      })
    ))

  it.live(
    "ends soon when it stops in mid-message, and records the unknown outcome",
    () =>
      fixture(({ mails, smtp, url }) =>
        Effect.gen(function* () {
          smtp.behave({ at: "data", does: "silence" })
          const scope = yield* Scope.make()
          yield* Layer.buildWithScope(mailer(url, smtpTo(smtp.url)), scope)
          yield* mails.add(mail(1))
          yield* Queue.take(smtp.taken)
          const began = performance.now()
          yield* Scope.close(scope, Exit.void)
          assert.isBelow(performance.now() - began, 20_000)
          assert.deepInclude((yield* rows)[0], { state: "unknown", doubts: 1, last_error: "no answer in time" })
        })
      ),
  )

  it.live("writes no link, token or address anywhere but into the message", () => {
    const logged: Array<string> = []
    const listening = Logger.layer([Logger.map(Logger.formatJson, (line) => void logged.push(line))])
    return fixture(({ mails, smtp, url }) =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        smtp.behave({ at: "data", answer: 554 }, { at: "data", does: "cut" })
        yield* Layer.build(mailer(url, smtpTo(smtp.url)))
        yield* mails.add(mail(1), mail(2), mail(3, "broken"))
        yield* until(Effect.map(rows, (found) => found.every(({ last_error }) => last_error !== null)))
        const stored = yield* sql`select row_to_json(m)::text from mails m`
        const announced = yield* sql`select row_to_json(o)::text from outbox o`
        yield* Effect.sync(() => logged.length).pipe(
          Effect.repeat({ until: (n) => n >= 3, schedule: Schedule.spaced("10 millis") }),
        )
        assert.notInclude(JSON.stringify([stored, announced, logged]), "SECRET")
        assert.notInclude(JSON.stringify([announced, logged]), "@example.com")
      })
    ).pipe(Effect.provide(listening))
  })
})
