/**
 * Notifications from outside: two programs on one database, a mail server and a Slack that fail in turn. A notification
 * made by one program is on the other's live stream, and no channel waits for another.
 */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Queue, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { serve } from "../services/platform/Outbound/LoopbackServers.ts"
import { home as emptyHome } from "../support/Processes.ts"
import { testSmtp } from "../support/TestSmtp.ts"
import { instance } from "./support/ProgramInstance.ts"
import { until } from "./support/Until.ts"
import { fixture, type ProgramFixture } from "./support/ProgramFixture.ts"

interface Told {
  readonly id: string
  readonly data: { readonly total: number; readonly unread: number; readonly notification?: { readonly title: string } }
}

const everything = { web: true, email: true, slack: true }

class Setting extends Context.Service<Setting, {
  readonly fixture: ProgramFixture
  /** The origin of the second program, which only answers requests. */
  readonly other: () => string
  readonly smtp: Effect.Success<ReturnType<typeof testSmtp>>
  /** Slack's received messages, by path; a path that begins with /broken is answered with 500. */
  readonly posted: ReadonlyArray<string>
  readonly slackUrl: (path: string) => string
  readonly sql: PgClient.PgClient
}>()("bailiwick/test/e2e/Channels/Setting") {
  static readonly layer = Layer.effect(
    Setting,
    Effect.gen(function* () {
      const smtp = yield* testSmtp()
      const posted: Array<string> = []
      const slack = yield* serve((request, response) => {
        request.resume().on("end", () => {
          posted.push(request.url!)
          response.writeHead(request.url!.startsWith("/broken") ? 500 : 200).end("ok")
        })
      })
      const first = yield* fixture({
        SMTP_URL: smtp.url,
        MAIL_FROM: "Bailiwick <no-reply@mail.example>",
        SLACK_HOSTS: "localhost",
      })
      const second = yield* instance({
        ...first.env,
        BAILIWICK_HOME: yield* emptyHome,
        BAILIWICK_KEYS_FILE: join(first.home, "keys.json"),
        ROLES: "api",
      })
      yield* second.start()
      const sql = yield* PgClient.make({
        url: Redacted.make(first.env["DATABASE_OWNER_URL"]!),
        maxConnections: 1,
      }).pipe(Effect.provide(Reactivity.layer))
      return {
        fixture: first,
        other: second.origin,
        smtp,
        posted,
        slackUrl: (path: string) => `http://localhost:${slack.port}${path}`,
        sql,
      }
    }),
  )
}

/** An account with every channel on. */
const listener = Effect.fnUntraced(function* (slackPath: string) {
  const { slackUrl, fixture: { account, feed } } = yield* Setting
  const made = yield* account()
  yield* feed.publish(
    "intake.v1.directory.account",
    JSON.stringify({
      kind: "account",
      id: made.id,
      version: 2,
      email: `${made.id}@example.com`,
      name: "Somebody",
      plan: "business",
      platform_admin: false,
      status: "active",
      slack_webhook_url: slackUrl(slackPath),
    }),
  )
  const { sql } = yield* Setting
  const there = sql`select from accounts where id = ${made.id}::uuid and slack_webhook_url is not null`
  yield* until("its Slack", Effect.orDie(there), (rows) => rows.length === 1)
  const preferences = { alerts: everything }
  const set = yield* made.session.call("PUT", "/v1/notifications/preferences", { body: { preferences } })
  assert.deepStrictEqual(set.json.preferences.alerts, everything)
  return made
})

const tell = Effect.fnUntraced(function* (accountId: string, title: string) {
  const { fixture: { feed } } = yield* Setting
  const said = { category: "alerts", severity: "warning", title, body: "This is what.", href: "/x" }
  yield* feed.publish(
    "intake.v1.notifications",
    JSON.stringify({ id: randomUUID(), account_id: accountId, ...said }),
  )
})

/** The subject of the next mail to an account. */
const mailed = Effect.fnUntraced(function* (accountId: string) {
  const { smtp } = yield* Setting
  const next = Effect.repeat(Queue.take(smtp.taken), { until: ({ to }) => to[0] === `${accountId}@example.com` })
  return (yield* next).mail.subject
})

/** Follows a program's live stream. */
const follow = Effect.fnUntraced(function* (origin: string, cookie: string, lastEventId?: string) {
  const events = yield* Queue.unbounded<Told>()
  const controller = new AbortController()
  const response = yield* Effect.promise(() =>
    fetch(`${origin}/v1/notifications/stream`, {
      signal: controller.signal,
      headers: { cookie, ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }) },
    })
  )
  assert.strictEqual(response.status, 200)
  const read = async () => {
    let text = ""
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      const blocks = (text + piece).split("\n\n")
      text = blocks.pop()!
      for (const block of blocks.filter((block) => block.startsWith("id: "))) {
        const [id, , data] = block.split("\n").map((line) => line.slice(line.indexOf(": ") + 2))
        Queue.offerUnsafe(events, { id: id!, data: JSON.parse(data!) })
      }
    }
  }
  read().catch(() => {})
  yield* Effect.addFinalizer(() => Effect.sync(() => controller.abort()))
  return { next: Queue.take(events), cut: Effect.sync(() => controller.abort()) }
})

layer(Setting.layer, { excludeTestServices: true, timeout: "2 minutes" })("channels", (it) => {
  it.effect(
    "a stream shows notifications that another program made; a client resumes it at either program",
    () =>
      Effect.gen(function* () {
        const { other, fixture: { cookie, instance } } = yield* Setting
        const me = yield* listener("/good")
        const session = (yield* cookie(me.id))["cookie"]!
        const there = yield* follow(other(), session)
        const { data: { total } } = yield* there.next
        yield* tell(me.id, "one")
        const one = yield* there.next
        assert.deepStrictEqual([one.data.notification?.title, one.data.total], ["one", total + 1])
        yield* there.cut
        yield* tell(me.id, "two")
        const here = yield* follow(instance.origin(), session, one.id)
        const two = yield* Effect.repeat(here.next, { until: ({ data }) => data.notification !== undefined })
        assert.deepStrictEqual([two.data.notification?.title, two.data.total], ["two", total + 2])
        assert.notStrictEqual(two.id, one.id)
        yield* me.session.post("/v1/notifications/read-all")
        // A resume that finds the second notification there already has the counts after it.
        yield* Effect.repeat(here.next, { until: ({ data }) => data.unread === 0 })
      }).pipe(Effect.scoped),
    240_000,
  )

  it.effect(
    "a failing Slack does not stop mail and web, and a silent mail server does not delay Slack and web",
    () =>
      Effect.gen(function* () {
        const { posted, smtp, sql } = yield* Setting
        const noSlack = yield* listener("/broken/noSlack")
        yield* mailed(noSlack.id)
        yield* tell(noSlack.id, "By mail")
        assert.strictEqual(yield* mailed(noSlack.id), "By mail")
        yield* until("Slack's 500", Effect.sync(() => posted), (paths) => paths.includes("/broken/noSlack"))

        const noMail = yield* listener("/good/noMail")
        // The first key's hour of coalescing is over.
        yield* mailed(noMail.id)
        smtp.behave({ at: "data", does: "silence" })
        yield* tell(noMail.id, "By Slack")
        yield* until("Slack", Effect.sync(() => posted), (paths) => paths.includes("/good/noMail"))
        const state = sql<{ slack: string; mail: string }>`
        select s.state as slack, m.state as mail from slack_messages s, mails m
        where s.account_id = ${noMail.id}::uuid and s.title = 'By Slack'
          and m.recipient = ${`${noMail.id}@example.com`} and m.args ->> 'title' = 'By Slack'`
        yield* until("the post's record", Effect.orDie(state), ([row]) => row?.slack === "sent")
        assert.notStrictEqual((yield* state)[0]?.mail, "sent")
        for (const [{ api }, title] of [[noSlack, "By mail"], [noMail, "By Slack"]] as const) {
          const { json } = yield* api.get("/v1/notifications?category=alerts")
          assert.include(json.items.map((item: { readonly title: string }) => item.title), title)
        }
      }),
    240_000,
  )
})
