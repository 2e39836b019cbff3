/**
 * docs/lifecycle.md tells a consumer without the kit everything: its own blocks of JavaScript, and none of the kit's or
 * the program's code, verify a history that the program has signed, come to the state of its snapshot, and go through a
 * transition of keys; its tables name exactly the members that events and states have.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { lifecycleEventKinds } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { CursorApi } from "../../../services/lifecycle/CursorApi.ts"
import { EventLog } from "../../../services/lifecycle/EventLog.ts"
import { KeyRotation } from "../../../services/lifecycle/KeyRotation.ts"
import { SigningKeys } from "../../../services/lifecycle/SigningKeys.ts"
import { runOnce } from "../../../services/platform/database/UnitOfWork.ts"
import { day } from "../../support/Fixtures.ts"
import { now, timed } from "../transfers/TransferFixture.ts"
import { rotating, states, work } from "./Keys/KeysFixture.ts"
import { everything, type Scene, scene, signAll } from "./LifecycleFixture.ts"
import { anyEvent, diceOf, eventOf, kinds } from "./RandomEvents.ts"

type Json = string | number | boolean | null | ReadonlyArray<Json> | Members
interface Members {
  readonly [name: string]: Json
}

interface Event {
  readonly type: string
  readonly sub_id: Members
  readonly payload: Members
  readonly kid: string
  readonly epoch: number
  readonly position: number
  readonly digest: string
}

/** The functions that the page's blocks export. */
interface PageCode {
  readonly opened: (token: string, typ: string, expected: {
    readonly audience: string
    readonly issuer: string
    readonly keys: ReadonlyArray<unknown>
    readonly now: number
    readonly pins: ReadonlySet<string>
  }) => Members & { readonly kid: string }
  readonly following: (claims: Members, last: Pick<Event, "epoch" | "position" | "digest">) => Event
  readonly change: (event: Event) => readonly [group: string, does: "set" | "remove", entry: Members] | undefined
  readonly identifier: Readonly<Record<string, (entry: Members) => string>>
  readonly pinsAfter: (event: Event, pins: ReadonlySet<string>) => ReadonlySet<string>
  readonly canonical: (value: Json) => string
}

const page = readFileSync("docs/lifecycle.md", "utf8")

const code = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "page-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
).pipe(
  Effect.flatMap((folder) =>
    Effect.promise(async (): Promise<PageCode> => {
      const file = join(folder, "page.mjs")
      writeFileSync(file, [...page.matchAll(/```js\n([\s\S]*?)```/g)].map(([, block]) => block).join("\n"))
      return await import(pathToFileURL(file).href)
    })
  ),
)

/** A consumer that is made of the page's code alone; it starts from a snapshot. */
const reader = Effect.fnUntraced(function* ({ asking, project }: Scene) {
  const { change, following, identifier, opened, pinsAfter } = yield* code
  const cursors = yield* CursorApi
  const keys = yield* SigningKeys
  yield* keys.ensure
  let pins: ReadonlySet<string> = new Set(yield* keys.keySet)
  let state = new Map<string, Members>()
  let last = { epoch: 0, position: 0, digest: "" }
  let cursor = ""

  const expecting = Effect.gen(function* () {
    const { keys: served } = yield* keys.jwks
    const about = { audience: `urn:bailiwick:project:${project}`, issuer: "https://id.example/lifecycle" }
    return { ...about, keys: served, now: (yield* now) / 1_000, pins }
  })

  const idOf = (group: string, entry: Members) => {
    assert.property(identifier, group, "`identifier` of docs/lifecycle.md")
    return identifier[group]!(entry)
  }

  const snapshot = Effect.gen(function* () {
    const claims = opened(yield* cursors.snapshot(asking), "lifecycle-snapshot+jwt", yield* expecting)
    const entries = Object.entries(claims["state"] as Members).flatMap(([group, value]) =>
      (Array.isArray(value) ? value : value === null ? [] : [value]).map((entry) =>
        [`${group} ${idOf(group, entry)}`, entry] as const
      )
    )
    return { claims, state: new Map<string, Members>(entries) }
  })

  const catchUp = Effect.gen(function* () {
    const { claims, state: found } = yield* snapshot
    state = found
    pins = new Set(claims["key_set"] as ReadonlyArray<string>)
    last = {
      epoch: Number(claims["epoch"]),
      position: Number(claims["position"]),
      digest: String(claims["chain_head"]),
    }
    cursor = String(claims["cursor"])
    return claims.kid
  })

  /** Applies one message, as the page says. */
  const take = Effect.fnUntraced(function* (token: string) {
    const event = following(opened(token, "secevent+jwt", yield* expecting), last)
    const done = change(event)
    if (done !== undefined) {
      const [group, does, entry] = done
      const name = `${group} ${idOf(group, entry)}`
      if (does === "set") state.set(name, entry)
      else state.delete(name)
    }
    pins = pinsAfter(event, pins)
    last = event
    return event
  })

  const read = Effect.gen(function* () {
    const found = yield* everything(asking, cursor)
    const events = yield* Effect.forEach(found.items, ({ set }) => take(set))
    cursor = found.cursor
    return events
  })

  const acknowledge = Effect.suspend(() =>
    cursors.acknowledge({ ...asking, cursor, chain_head: last.digest, installed_version: "1" })
  )

  yield* catchUp
  return {
    acknowledge,
    catchUp,
    cursor: () => cursor,
    expecting,
    pins: () => pins,
    read,
    snapshot,
    state: () => state,
    take,
  }
})

/** Appends events of every kind but key transitions, which come from the rotation alone, and signs them. */
const append = Effect.fnUntraced(function* (made: Scene, dice: ReturnType<typeof diceOf>) {
  const { append } = yield* EventLog
  const some = kinds.filter((kind) => kind !== "key-transition")
  const all = [...some, ...some, ...some].map((kind) => eventOf(dice, kind, made))
  for (let i = 0; i < 100; i++) all.push(anyEvent(dice, made))
  for (const event of all) if (event.kind !== "key-transition") yield* runOnce(append(event))
  yield* signAll
})

const sorted = (state: ReadonlyMap<string, Members>, canonical: PageCode["canonical"]) =>
  [...state].map(([name, entry]) => `${name} ${canonical(entry)}`).sort()

const refused = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.exit(effect), (exit) => exit._tag === "Failure" ? /Error: (\w+)/.exec(String(exit.cause))?.[1] : "")

/** Cells of the rows of a table, by its first heading. */
const rowsOf = (heading: string) => {
  const [, body] = page.split(`| ${heading} |`)
  const lines = body!.split("\n").slice(2)
  return lines.slice(0, lines.findIndex((line) => !line.startsWith("|")))
    .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()))
}

interface Named {
  readonly optional: boolean
  readonly members: Readonly<Record<string, Named>> | null
}

/** Names in backquotes, each with whether a question mark follows it. */
const namesOf = (text: string) =>
  [...text.matchAll(/`(\w+)`(\?)?/g)].map(([, name, mark]): [string, Named] => [
    name!,
    { optional: mark === "?", members: null },
  ])

/** The members in a cell: `name`: its members, or words about it. */
const membersOf = (cell: string, above: Readonly<Record<string, Named>>) =>
  Object.fromEntries(
    cell.split(";").flatMap((part): Array<[string, Named]> => {
      const [head, rest] = part.split(":", 2)
      const known = /^\s*`(\w+)` as above/.exec(part)
      if (known !== null) return [[known[1]!, above[known[1]!]!]]
      const nested = rest === undefined ? [] : namesOf(rest)
      return namesOf(head!).map(([name, named]) => [
        name,
        nested.length === 0 ? named : { ...named, members: Object.fromEntries(nested) },
      ])
    }),
  )

const fits = (value: Members, named: Readonly<Record<string, Named>>, about: string) => {
  for (const name of Object.keys(value)) assert.property(named, name, about)
  for (const [name, { members, optional }] of Object.entries(named)) {
    if (!optional) assert.property(value, name, about)
    if (members !== null && value[name] !== undefined) fits(value[name] as Members, members, `${about} ${name}`)
  }
}

const common = {
  event_timestamp: { optional: false, members: null },
  initiating_entity: { optional: false, members: null },
  reason_admin: { optional: true, members: { en: { optional: false, members: null } } },
}

/** Type URIs of the page's table, with the members of each, and what may stand in its subject. */
const types = () => {
  const bases = Object.fromEntries(
    [...page.matchAll(/^const (own|caep|risc) = "(.*)"$/gm)].map(([, name, uri]) => [name!, uri!]),
  )
  let above: Readonly<Record<string, Named>> = {}
  return new Map(
    rowsOf("Event type").map(([type, subject, own]) => {
      const [, base, name] = /^(\w+) `([\w-]+)`$/.exec(type!)!
      const members = membersOf(own!, above)
      above = { ...above, ...members }
      const subjects = subject!.split("; or ").map((one) => one.split(":")[0]!.split(", "))
      return [`${bases[base!]}${name}`, { members: { ...common, ...members }, subjects }] as const
    }),
  )
}

const subjectFits = (subject: Members, subjects: ReadonlyArray<ReadonlyArray<string>>) =>
  subjects.some((names) => {
    if (names[0] === "person") return Object.keys(subject).sort().join() === "format,iss,sub"
    const given = Object.keys(subject).filter((name) => name !== "format")
    return given.every((name) => names.includes(name) || names.includes(`${name}?`)) &&
      names.every((name) => name.endsWith("?") || given.includes(name))
  })

describe("docs/lifecycle.md", () => {
  it.live("verifies a history of every event type, comes to the snapshot's state, and refuses what was changed", () =>
    Effect.gen(function* () {
      const { canonical } = yield* code
      const made = yield* scene
      const own = yield* reader(made)
      const from = own.cursor()
      yield* append(made, diceOf(16))
      const { items } = yield* everything(made.asking, from)

      const [first, second, third] = items.map(({ set }) => set)
      assert.strictEqual(yield* refused(own.take(second!)), "gap")
      const [head, body, signature] = first!.split(".")
      const forged = JSON.parse(Buffer.from(body!, "base64url").toString())
      const other = Buffer.from(JSON.stringify({ ...forged, jti: "other" })).toString("base64url")
      assert.strictEqual(yield* refused(own.take(`${head}.${other}.${signature}`)), "signature")
      assert.strictEqual(yield* refused(own.take(yield* (yield* CursorApi).snapshot(made.asking))), "header")
      yield* own.take(first!)
      assert.strictEqual(yield* refused(own.take(first!)), "gap")
      assert.strictEqual(yield* refused(own.take(third!)), "gap")
      const { following, opened } = yield* code
      const expected = yield* own.expecting
      const claims = opened(second!, "secevent+jwt", expected)
      const [[type, event]] = Object.entries(claims["events"] as Members) as unknown as [[string, Members]]
      const place = event["lifecycle"] as Members
      const last = { epoch: Number(place["epoch"]), position: Number(place["position"]) - 1 }
      const digest = String(place["prev_digest"])
      assert.strictEqual(following(claims, { ...last, digest }).type, type)
      for (const changed of [{ ...event, initiating_entity: "x" }, { ...event, lifecycle: { ...place, epoch: 9 } }]) {
        assert.throws(() => following({ ...claims, events: { [type]: changed } }, { ...last, digest }), "digest")
      }
      for (const wrong of [{ audience: "x" }, { issuer: "x" }, { keys: [] }, { pins: new Set("x") }, { now: 0 }]) {
        assert.throws(() => opened(second!, "secevent+jwt", { ...expected, ...wrong }))
      }

      for (const { set } of items.slice(1)) yield* own.take(set)
      const { claims: taken, state } = yield* own.snapshot
      const hint = "`change` of docs/lifecycle.md makes another state than the program"
      assert.deepStrictEqual(sorted(own.state(), canonical), sorted(state, canonical), hint)
      assert.isAbove(state.size, 12)
      const whole = createHash("sha256").update(canonical(taken["state"]!)).digest("hex")
      assert.strictEqual(taken["state_digest"], `sha256:${whole}`)
    }).pipe(timed, Effect.provide(rotating())))

  it.live("names exactly the members of every event type and of every group of the state", () =>
    Effect.gen(function* () {
      const named = types()
      const uris = Object.values(lifecycleEventKinds).map(({ uri }) => uri)
      assert.deepStrictEqual([...named.keys()].sort(), uris.sort(), "rows of `Event type` in docs/lifecycle.md")
      const made = yield* scene
      const own = yield* reader(made)
      yield* append(made, diceOf(17))
      const rotation = yield* KeyRotation
      yield* rotation.announce((yield* now) + day)
      yield* work
      const seen = new Set<string>()
      for (const { payload, sub_id, type } of yield* own.read) {
        const { members, subjects } = named.get(type)!
        seen.add(type)
        fits(payload, members, type)
        assert.isTrue(subjectFits(sub_id, subjects), `${type} ${JSON.stringify(sub_id)}`)
      }
      assert.deepStrictEqual([...seen].sort(), [...named.keys()].sort())

      const { claims } = yield* own.snapshot
      const groups = new Map(
        rowsOf("Group").map(([group]) => {
          const [, name, kind] = /^`(\w+)` \((list|one, or null)\)$/.exec(group!)!
          return [name!, kind!] as const
        }),
      )
      const state = claims["state"] as Members
      assert.deepStrictEqual(
        [...groups.keys()].sort(),
        Object.keys(state).sort(),
        "rows of `Group` in docs/lifecycle.md",
      )
      for (const [name, kind] of groups) assert.strictEqual(Array.isArray(state[name]), kind === "list", name)
    }).pipe(timed, Effect.provide(rotating())))

  it.live("keeps its pins through a transition of keys, and through a theft", () =>
    Effect.gen(function* () {
      const made = yield* scene
      const own = yield* reader(made)
      yield* work
      yield* own.read
      yield* own.acknowledge
      const rotation = yield* KeyRotation
      const first = (yield* states).active[0]!
      const start = (yield* now) + day
      const second = yield* rotation.announce(start)
      yield* work
      const [announced] = (yield* own.read).slice(-1)
      assert.strictEqual(announced!.kid, first)
      assert.strictEqual(announced!.payload["not_before"], start / 1_000)
      assert.include([...own.pins()], second)
      yield* own.acknowledge
      yield* TestClock.setTime(start)
      yield* work
      const [switched] = yield* own.read
      assert.strictEqual(switched!.kid, second)
      assert.includeMembers([...own.pins()], [first, second, ...switched!.payload["next"] as ReadonlyArray<string>])

      const third = yield* rotation.compromise(second, "found in a log")
      yield* work
      // What the stolen key signed is no history to go on from: only a snapshot is.
      assert.strictEqual(yield* own.catchUp, third)
      assert.notInclude([...own.pins()], second)
      yield* append(made, diceOf(18))
      assert.isAbove((yield* own.read).length, 50)
    }).pipe(timed, Effect.provide(rotating())))
})
