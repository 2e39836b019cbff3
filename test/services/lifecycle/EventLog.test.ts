import { assert, layer } from "@effect/vitest"
import { Data, Effect, Layer, Random } from "effect"
import { createHash } from "node:crypto"
import { InstitutionId, PersonId, ProjectId } from "../../../schemas/BrandedIds.ts"
import { type LifecycleEventKind, lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { EventLog, type NewLifecycleEvent } from "../../../services/lifecycle/EventLog.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { runOnce } from "../../../services/platform/database/UnitOfWork.ts"
import { ground as accounts } from "../../support/TestAccounts.ts"

const ground = Layer.provideMerge(EventLog.layer, accounts)

interface Event {
  readonly id: string
  readonly project_id: string
  readonly epoch: number
  readonly position: bigint
  readonly digest: string
  readonly prev_digest: string
  readonly body_digest: string
  readonly kind: LifecycleEventKind
  readonly txn: string
  readonly sub_id: unknown
  readonly payload: unknown
}

/** RFC 8785 for what these events hold: ASCII names, strings, whole numbers. */
const jcs = (value: unknown): string =>
  Array.isArray(value)
    ? `[${value.map(jcs).join(",")}]`
    : value !== null && typeof value === "object"
    ? `{${Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([k, v]) => `${JSON.stringify(k)}:${jcs(v)}`)}}`
    : JSON.stringify(value)

const sha256 = (text: string) => `sha256:${createHash("sha256").update(text, "utf8").digest("hex")}`

/** Recomputes the chain from the events alone, link by link. */
const verify = (events: ReadonlyArray<Event>) => {
  let digest = `sha256:${"0".repeat(64)}`
  events.forEach((event, i) => {
    const { uri } = lifecycleEventKinds[event.kind]
    const body = sha256(jcs({ sub_id: event.sub_id, events: { [uri]: event.payload } }))
    assert.strictEqual(Number(event.position), i + 1)
    assert.strictEqual(event.body_digest, body)
    assert.strictEqual(event.prev_digest, digest)
    digest = sha256(`${digest}\n${event.epoch}\n${event.position}\n${body}`)
    assert.strictEqual(event.digest, digest)
  })
  return digest
}

const history = Effect.fnUntraced(function* (project: string) {
  const { sql } = yield* Database
  return yield* sql<Event>`select * from lifecycle_events where project_id = ${project} order by epoch, position`
})

const event = (project: string, n = 0): NewLifecycleEvent => ({
  kind: "access-granted",
  projectId: ProjectId.make(project),
  institutionId: InstitutionId.make("i1"),
  person: { id: PersonId.make("p1"), issuer: "https://id.example", subject: "s-1" },
  payload: { access: { access_id: `a${n}`, version: 1 } },
  initiatedBy: "admin",
})

class Enough extends Data.TaggedError("Enough") {}

layer(ground, { excludeTestServices: true })("Positions", (it) => {
  it.effect("have no gaps and follow the order of commits under concurrent writers and rollbacks", () =>
    Effect.gen(function* () {
      const { append } = yield* EventLog
      const { sql } = yield* Database
      const projects = ["one", "two", "Three", "four"]
      const some = Effect.map(Random.next, (x) => projects[Math.floor(x * projects.length)]!)
      const delay = Effect.flatMap(Random.next, (x) => Effect.sleep(4 * x))
      const committed: Array<ReadonlyArray<string>> = []

      const write = Effect.gen(function* () {
        const own: Array<string> = []
        for (let i = 0; i < 12; i++) {
          const cause = Effect.gen(function* () {
            const events = yield* Effect.forEach([1, 2, 3], (n) => Effect.map(some, (project) => event(project, n)))
            const ids = [...(yield* append(...events))]
            yield* delay
            ids.push(...(yield* append(event(yield* some, i))))
            yield* delay
            if ((yield* Random.next) < 0.3) return yield* new Enough()
            return ids
          })
          own.push(...(yield* runOnce(cause).pipe(Effect.catchTag("Enough", () => Effect.succeed([])))))
        }
        committed.push(own)
      })

      // A reader that goes on from the last position it saw must never miss an event that commits later.
      const seen = new Map(projects.map((project) => [project, 0]))
      const read = Effect.forEach(projects, (project) =>
        Effect.map(
          sql<{ position: bigint }>`select position from lifecycle_events
            where project_id = ${project} and position > ${seen.get(project)!} order by position`,
          (rows) => {
            for (const { position } of rows) {
              assert.strictEqual(Number(position), seen.get(project)! + 1)
              seen.set(project, Number(position))
            }
          },
        ))
      const writers = Effect.all(Array.from({ length: 8 }, () => write), { concurrency: "unbounded" })
      yield* Effect.raceFirst(writers, Effect.forever(read))
      yield* read

      const places = new Map<string, Event>()
      for (const project of projects) {
        const events = yield* history(project)
        const digest = verify(events)
        const [head] = yield* sql<{ position: bigint; digest: string }>`
          select position, digest from lifecycle_heads where project_id = ${project}`
        assert.deepStrictEqual([Number(head!.position), head!.digest], [events.length, digest])
        for (const event of events) places.set(event.id, event)
      }
      assert.deepStrictEqual([...places.keys()].sort(), committed.flat().sort())
      assert.isAbove(places.size, 50)
      for (const own of committed) {
        for (const project of projects) {
          const order = own.map((id) => places.get(id)!).filter((e) => e.project_id === project).map((e) => e.position)
          assert.deepStrictEqual(order, order.toSorted((a, b) => Number(a - b)))
        }
      }
    }))

  it.effect("events of one cause share a number; events of an inner command that rolled back are not kept", () =>
    Effect.gen(function* () {
      const { append } = yield* EventLog
      const project = "nested"
      const [first, kept] = yield* runOnce(Effect.gen(function* () {
        const first = yield* append(event(project, 1), event(project, 2))
        yield* runOnce(Effect.andThen(append(event(project, 3)), Effect.fail(new Enough()))).pipe(
          Effect.catchTag("Enough", () => Effect.void),
        )
        return [first, yield* runOnce(append(event(project, 4)))] as const
      }))
      const events = yield* history(project)
      verify(events)
      assert.deepStrictEqual(events.map(({ id }) => id), [...first, ...kept])
      assert.strictEqual(events[0]!.txn, events[1]!.txn)
      assert.notStrictEqual(events[0]!.txn, events[2]!.txn)
    }))

  it.effect("appending outside a unit of work does not compile, and adds no event without a position", () =>
    Effect.gen(function* () {
      const { append } = yield* EventLog
      const { sql } = yield* Database
      // @ts-expect-error: this transaction has no end that would give the event its position.
      const endless: Effect.Effect<unknown, unknown> = sql.withTransaction(append(event("endless")))
      assert.strictEqual((yield* Effect.exit(endless))._tag, "Failure")
      assert.lengthOf(yield* history("endless"), 0)
    }))

  it.effect("cannot be changed or deleted once appended, not even by the tables' owner", () =>
    Effect.gen(function* () {
      const { append } = yield* EventLog
      const { owner, sql } = yield* Database
      yield* runOnce(append(event("kept")))
      const before = yield* history("kept")
      const refused = <A, E>(statement: Effect.Effect<A, E>) => Effect.map(Effect.result(statement), ({ _tag }) => _tag)
      for (const role of [sql, owner]) {
        assert.strictEqual(yield* refused(role`update lifecycle_events set kind = 'access-revoked'`), "Failure")
        assert.strictEqual(yield* refused(role`delete from lifecycle_events`), "Failure")
        assert.strictEqual(yield* refused(role`truncate lifecycle_events`), "Failure")
      }
      assert.deepStrictEqual(yield* history("kept"), before)
    }))
})
