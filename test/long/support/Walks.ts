/**
 * Transfers as people make them, while the program is killed and restarted: every request is repeated until it is
 * answered, every link comes from a mail that arrived, and the test only moves time on. The final state of each walk is
 * known beforehand, also where an answer was lost.
 */
import { Effect, Queue } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../../../services/platform/database/Database.ts"
import { api, type Reply } from "../../e2e/support/ApiClient.ts"
import { until } from "../../e2e/support/Until.ts"
import type { ProgramFixture } from "../../e2e/support/ProgramFixture.ts"
import type { Taken, testSmtp } from "../../support/TestSmtp.ts"
import { slack } from "./Slack.ts"

export type WalkKind = "complete" | "expire" | "stop" | "decline" | "cancel" | "force"

export interface Walk {
  readonly kind: WalkKind
  readonly domainId: string
  readonly name: string
}

/** The states of each walk, and the recipients of its mails, in the end. */
export const ways: Readonly<
  Record<
    WalkKind,
    {
      readonly states: ReadonlyArray<string>
      readonly mails: ReadonlyArray<string>
    }
  >
> = {
  complete: {
    states: ["pending", "accepted", "completed"],
    // It asks for a new DKIM key.
    mails: ["invitation bob", "stop alice", "key bob", "completed alice", "completed bob"],
  },
  expire: { states: ["pending", "expired"], mails: ["invitation bob", "expired alice", "expired bob"] },
  stop: {
    states: ["pending", "accepted", "reversed"],
    mails: ["invitation bob", "stop alice", "reversed alice", "reversed bob"],
  },
  decline: { states: ["pending", "declined"], mails: ["invitation bob", "declined alice"] },
  cancel: { states: ["pending", "cancelled"], mails: ["invitation bob", "cancelled bob"] },
  force: { states: ["completed"], mails: ["completed alice", "completed bob"] },
}

const kinds = Object.keys(ways) as ReadonlyArray<WalkKind>

export interface Cast {
  readonly alice: string
  readonly bob: string
  /** Mails that the server accepted. */
  readonly arrived: ReadonlyArray<Taken>
  readonly told: Effect.Success<typeof slack>["said"]
  /** The program's current address. */
  readonly moved: (origin: string) => void
  /** New domains of Alice's, one for each kind of walk, once the program knows them. */
  readonly prepare: Effect.Effect<ReadonlyArray<Walk>, unknown, Database>
  readonly walk: (walk: Walk) => Effect.Effect<Walk, unknown, Database>
  /** Waits until a walk's end is shown to the person who began it. */
  readonly shown: (walk: Walk) => Effect.Effect<unknown, unknown>
}

/** Polled seldom, since many concurrent walks would otherwise keep the program busy with polling. */
const often = "200 millis"
const patience = 600

const publish = (fixture: ProgramFixture, kind: string, id: string, fields: Readonly<Record<string, unknown>>) =>
  fixture.feed.publish(`intake.v1.directory.${kind}`, JSON.stringify({ kind, id, version: 1, ...fields }))

/** Repeats the request until it gets a definite answer. */
const insist = (what: string, ask: Effect.Effect<Reply>, good: ReadonlyArray<number>) =>
  until(
    what,
    Effect.delay(Effect.catchCause(Effect.timeout(ask, "10 seconds"), () => Effect.succeed(null)), often),
    (reply) => reply !== null && good.includes(reply.status),
    patience,
  )

/**
 * Moves the transfer's next due time to now, and waits for its timer. The wait reads the rows: a list would itself
 * settle the due transfer before any timer fires.
 */
const itsTime = Effect.fnUntraced(function* (domainId: string) {
  const { sql } = yield* Database
  yield* Effect.gen(function* () {
    yield* sql`update transfers set cooloff_until = case when status = 'accepted' then now() end,
        expires_at = case when status = 'pending' then now() else expires_at end
      where domain_id = ${domainId}::uuid and status in ('pending', 'accepted')`
    yield* sql`update timers set due_at = now(), not_before = now()
      where aggregate_id in (select id::text from transfers where domain_id = ${domainId}::uuid)`
  }).pipe(sql.withTransaction)
  const live = sql`
    select from transfers where domain_id = ${domainId}::uuid and status in ('pending', 'accepted')`
  yield* until("the clock", Effect.delay(live, often), ({ length }) => length === 0, patience)
})

/** Alice, who has domains, Bob, who takes them, and an administrator. */
export const cast = Effect.fnUntraced(function* (
  fixture: ProgramFixture,
  smtp: Effect.Success<ReturnType<typeof testSmtp>>,
) {
  let origin = fixture.instance.origin()
  const channel = yield* slack
  const arrived: Array<Taken> = []
  yield* Effect.forkScoped(
    Effect.forever(Effect.map(Queue.take(smtp.taken), (taken) => taken.accepted && void arrived.push(taken))),
  )
  const person = Effect.fnUntraced(function* (fields: Readonly<Record<string, unknown>>) {
    const [id, workspace] = [randomUUID(), randomUUID()]
    yield* publish(fixture, "account", id, {
      email: `${id}@example.com`,
      name: "P",
      plan: "business",
      platform_admin: false,
      status: "active",
      ...fields,
    })
    yield* publish(fixture, "workspace", workspace, { name: "W", created_at: "2020-01-01T00:00:00Z" })
    const seat = { workspace_id: workspace, account_id: id, role: "owner" }
    yield* publish(fixture, "workspace_membership", randomUUID(), seat)
    const session = api(() => origin, yield* fixture.cookie(id))
    yield* insist("an account", session.get("/v1/domain-transfers/incoming"), [200])
    return { id, workspace, session }
  })
  const alice = yield* person({})
  const bob = yield* person({ slack_webhook_url: channel.url })
  const root = yield* person({ platform_admin: true })
  const choice = { preferences: { domains: { slack: true } } }
  yield* insist("a preference", bob.session.call("PUT", "/v1/notifications/preferences", { body: choice }), [200])

  const mailed = (name: string, path: string) =>
    Effect.map(
      until(
        `the link of ${name}`,
        Effect.sync(() =>
          arrived.flatMap(({ mail }) =>
            mail.text.includes(name) ? new RegExp(`/transfers/${path}/([\\w-]+)`).exec(mail.text)?.[1] ?? [] : []
          )
        ),
        (links) => links.length > 0,
        patience,
      ),
      ([token]) => token!,
    )
  const ended = Effect.fnUntraced(function* ({ domainId, kind }: Walk) {
    const { sql } = yield* Database
    const there = sql`
      select from transfers where domain_id = ${domainId}::uuid and status = ${ways[kind].states.at(-1)!}`
    yield* until(`the end of ${kind}`, Effect.delay(there, often), ({ length }) => length > 0, patience)
  })
  const shown: Cast["shown"] = ({ domainId, kind }) =>
    until(
      `the end of ${kind}`,
      (kind === "force" ? root : alice).session.get("/v1/domain-transfers/outgoing"),
      ({ json }) =>
        json.some((t: { readonly domain_id: string; readonly status: string }) =>
          t.domain_id === domainId && t.status === ways[kind].states.at(-1)
        ),
    )

  const steps: Readonly<Record<WalkKind, (walk: Walk) => Effect.Effect<unknown, unknown, Database>>> = {
    complete: Effect.fnUntraced(function* (walk) {
      yield* offer(walk)
      yield* accept(walk, { rotate_dkim: true })
      yield* mailed(walk.name, "stop")
      yield* until(
        `the key of ${walk.name}`,
        Effect.sync(() => arrived.filter(({ mail }) => mail.text.includes(`_domainkey.${walk.name}`))),
        ({ length }) => length > 0,
        patience,
      )
      yield* itsTime(walk.domainId)
    }),
    expire: Effect.fnUntraced(function* (walk) {
      yield* offer(walk)
      yield* mailed(walk.name, "accept")
      yield* itsTime(walk.domainId)
    }),
    stop: Effect.fnUntraced(function* (walk) {
      yield* offer(walk)
      yield* accept(walk)
      const token = yield* mailed(walk.name, "stop")
      yield* insist("a stop", api(() => origin).post(`/v1/domain-transfers/stop/${token}`), [200, 404])
    }),
    decline: Effect.fnUntraced(function* (walk) {
      const id = yield* offer(walk)
      yield* mailed(walk.name, "accept")
      yield* insist("a decline", bob.session.post(`/v1/domain-transfers/${id}/decline`, {}), [200, 409])
    }),
    cancel: Effect.fnUntraced(function* (walk) {
      const id = yield* offer(walk)
      yield* mailed(walk.name, "accept")
      yield* insist("a cancel", alice.session.delete(`/v1/domain-transfers/${id}`), [200, 409])
    }),
    force: ({ domainId }) => {
      const body = { target_email: `${bob.id}@example.com`, rotate_dkim: false }
      const ask = Effect.gen(function* () {
        const fresh = yield* fixture.cookie(root.id, Math.floor(Date.now() / 1_000))
        return yield* api(() => origin, fresh).post(`/v1/admin/domain-transfers/${domainId}`, body)
      })
      return insist("a force", ask, [200, 409])
    },
  }
  const offer = Effect.fnUntraced(function* ({ domainId }: Walk) {
    const body = { target_email: `${bob.id}@example.com` }
    yield* insist("an offer", alice.session.post(`/v1/domains/${domainId}/transfer`, body), [200, 409])
    const reply = yield* insist("the offers", alice.session.get("/v1/domain-transfers/outgoing"), [200])
    const made: ReadonlyArray<{ readonly id: string; readonly domain_id: string }> = reply?.json
    return made.find((t) => t.domain_id === domainId)!.id
  })
  const accept = Effect.fnUntraced(function* ({ name }: Walk, body: object = {}) {
    const token = yield* mailed(name, "accept")
    yield* insist("an accept", bob.session.post(`/v1/domain-transfers/${token}/accept`, body), [200, 404])
  })

  const prepare = Effect.gen(function* () {
    const { sql } = yield* Database
    const walks = kinds.map((kind): Walk => {
      const domainId = randomUUID()
      return { kind, domainId, name: `${kind}-${domainId.slice(0, 8)}.example` }
    })
    for (const { domainId, name } of walks) {
      yield* publish(fixture, "domain", domainId, {
        name,
        account_id: alice.id,
        workspace_id: alice.workspace,
        verified_at: "2025-01-01T00:00:00Z",
        dkim_selector: "old",
      })
      const credential = { domain_id: domainId, account_id: alice.id, username: "u" }
      yield* publish(fixture, "smtp_credential", randomUUID(), credential)
    }
    const known = sql<{ n: number }>`
      select count(*)::int as n from domains d join smtp_credentials c on c.domain_id = d.id
      where d.id = any(${walks.map(({ domainId }) => domainId)}::uuid[])`
    yield* until("the domains", known, ([row]) => row!.n === walks.length)
    return walks
  })
  const walk: Cast["walk"] = Effect.fnUntraced(function* (one) {
    yield* steps[one.kind](one)
    yield* ended(one)
    return one
  })
  return {
    alice: alice.id,
    bob: bob.id,
    arrived,
    told: channel.said,
    moved: (to) => void (origin = to),
    prepare,
    walk,
    shown,
  } satisfies Cast
})
