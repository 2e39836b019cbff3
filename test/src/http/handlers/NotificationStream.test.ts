import { assert, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { connect, type Socket } from "node:net"
import { Inbox } from "../../../../services/notifications/Inbox.ts"
import { Live } from "../../../../services/notifications/Live.ts"
import { Server } from "../../../../src/http/Server.ts"
import { account, signedIn } from "../../../support/TestAccounts.ts"
import { announce, list, notice } from "../../../services/notifications/NotificationFixture.ts"
import { call, follow, type Headers, type LiveEvent, type Reader, servedBy } from "./NotificationServer.ts"

const versionOf = ({ id }: LiveEvent) => Number(id.split(".")[1])

/** The next event, which must come. */
const next = (reader: Reader) => Effect.map(reader.next, (event) => event ?? assert.fail("the stream ended"))

const newcomer = Effect.gen(function* () {
  const id = yield* account({ plan: "free" })
  return { id, session: yield* signedIn(id) }
})

/** Waits for an effect of another fiber or socket. */
const until = <E, R>(holds: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(Effect.andThen(Effect.sleep("10 millis"), holds), { until: (held) => held })

/** A stream, as soon as one of the ten places is free: the server notices a closed client a moment later. */
const admitted = (session: Headers, lastEventId: string) =>
  Effect.repeat(follow(session, lastEventId), { until: ({ status }) => status === 200 })

for (const nodeHttp of [false, true]) {
  layer(servedBy(nodeHttp), { excludeTestServices: true })(
    `GET /v1/notifications/stream, ${nodeHttp ? "on node:http" : "on the runtime's server"}`,
    (it) => {
      it.effect("a client that does not read is closed, and the others go on", () =>
        Effect.gen(function* () {
          const live = yield* Live
          const { id, session } = yield* newcomer
          const { port } = yield* Server
          const lazy = yield* Effect.promise(() =>
            new Promise<Socket>((resolve) => {
              const socket = connect({ port, host: "127.0.0.1" }, () => {
                socket.write(
                  `GET /v1/notifications/stream HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncookie: ${session.cookie}\r\n\r\n`,
                )
                socket.once("data", () => resolve(socket.pause()))
              })
              socket.on("error", () => {})
            })
          )
          const reader = yield* follow(session)
          yield* next(reader)
          assert.strictEqual(yield* live.count, 2)
          let told = 0
          while ((yield* live.count) === 2 && told < 1_000) {
            yield* announce(...Array.from({ length: 4 }, () => notice(id, { body: "x".repeat(50_000) })))
            for (let n = 0; n < 4; n++) yield* next(reader)
            told += 4
          }
          assert.strictEqual(yield* live.count, 1)
          yield* announce(notice(id, { title: "still here" }))
          let last = yield* next(reader)
          while (last.data.notification?.title !== "still here") last = yield* next(reader)
          lazy.destroy()
          yield* reader.cut
        }), 120_000)

      it.effect("a stream begins with the counts, then sends each change with the counts after it", () =>
        Effect.gen(function* () {
          const { id, session } = yield* newcomer
          const reader = yield* follow(session)
          assert.strictEqual(reader.status, 200)
          assert.strictEqual(reader.headers["content-type"], "text/event-stream")
          assert.strictEqual(reader.headers["cache-control"], "no-store, no-transform")
          assert.deepStrictEqual(yield* next(reader), { id: "0.0", event: "counts", data: { total: 0, unread: 0 } })
          yield* announce(notice(id, { title: "one\ntwo" }))
          const first = yield* next(reader)
          assert.deepStrictEqual(
            [first.event, first.data.notification?.title, first.data.total, first.data.unread],
            ["notification", "one\ntwo", 1, 1],
          )
          yield* announce(notice(id))
          const second = yield* next(reader)
          assert.deepStrictEqual([versionOf(second), second.data.total, second.data.unread], [2, 2, 2])
          yield* (yield* Inbox).markRead(id, first.data.notification!.id)
          const read = yield* next(reader)
          assert.deepStrictEqual([read.data.notification?.id, read.data.unread], [first.data.notification!.id, 1])
          assert.isString(read.data.notification?.read_at)
          yield* (yield* Inbox).readAll(id)
          const all = yield* next(reader)
          assert.deepStrictEqual([all.event, versionOf(all), all.data.total, all.data.unread], ["read-all", 4, 2, 0])
          yield* reader.cut
        }))

      it.effect("a stream on an empty inbox sends everything from the first notification on", () =>
        Effect.gen(function* () {
          const { id, session } = yield* newcomer
          yield* announce(notice(id))
          const reader = yield* follow(session, "0.0")
          assert.deepStrictEqual([(yield* next(reader)).event, (yield* next(reader)).event], ["notification", "counts"])
          yield* reader.cut
        }))

      it.effect("a stream cut at random resumes without a gap or repeat, and the reader's view equals the list", () =>
        Effect.gen(function* () {
          const { id, session } = yield* newcomer
          const inbox = yield* Inbox
          const began = yield* follow(session)
          let lastId = (yield* next(began)).id
          yield* began.cut
          const changes = 110
          const happening = Effect.gen(function* () {
            for (let i = 0; i < changes; i++) {
              const { items } = yield* list(id, { limit: 5 })
              const some = items[i % 5]
              if (i % 29 === 28) yield* inbox.readAll(id)
              else if (i % 7 === 6 && some !== undefined) yield* inbox.markRead(id, some.id)
              else yield* announce(...Array.from({ length: 1 + i % 2 }, () => notice(id, { title: `${i}` })))
            }
            yield* announce(notice(id, { title: "the end" }))
          })
          const seen: Array<LiveEvent> = []
          const view = new Map<string, boolean>()
          const reading = Effect.gen(function* () {
            let version = Number(lastId.split(".")[1])
            while (true) {
              const reader = yield* admitted(session, lastId)
              const few = Math.floor(Math.random() * 12)
              for (let n = 0; n <= few; n++) {
                const event = yield* next(reader)
                // A resume may send the counts of a position again; nothing else comes twice, and nothing goes back.
                if (event.event === "counts") assert.isAtLeast(versionOf(event), version)
                else assert.isAbove(versionOf(event), version)
                version = versionOf(event)
                lastId = event.id
                seen.push(event)
                if (event.event === "read-all") { for (const key of view.keys()) view.set(key, true) }
                const told = event.data.notification
                if (told !== undefined) view.set(told.id, told.read_at !== null)
                if (told?.title === "the end") return yield* reader.cut
              }
              yield* reader.cut
            }
          })
          yield* Effect.all([happening, reading], { concurrency: 2 })
          const all = yield* list(id, { limit: 1_000 })
          assert.strictEqual(view.size, all.total)
          assert.deepStrictEqual(new Map(all.items.map((item) => [item.id, item.read_at !== null])), view)
          const last = seen.at(-1)!.data
          assert.deepStrictEqual([last.total, last.unread], [all.total, all.unread])
          assert.isAbove(seen.length, changes / 2)
        }))

      it.effect("a position of another epoch, from the future or malformed is reset", () =>
        Effect.gen(function* () {
          const { id, session } = yield* newcomer
          yield* announce(notice(id), notice(id))
          const [own] = (yield* next(yield* follow(session))).id.split(".")
          for (const wrong of ["abcdef012345.1", `${own}.3`, "nonsense", "0.1"]) {
            const reader = yield* follow(session, wrong)
            const told = yield* next(reader)
            assert.deepStrictEqual(told, { id: `${own}.2`, event: "reset", data: { total: 2, unread: 2 } }, wrong)
            yield* reader.cut
          }
        }))

      it.effect("a client far behind gets everything, page by page", () =>
        Effect.gen(function* () {
          const { id, session } = yield* newcomer
          const [first] = [yield* announce(notice(id)), yield* list(id)].slice(1)
          assert.strictEqual(first!.total, 1)
          const start = (yield* next(yield* follow(session))).id
          for (let i = 0; i < 6; i++) {
            yield* announce(...Array.from({ length: 100 }, () => notice(id, { body: "x".repeat(1_500) })))
          }
          const reader = yield* follow(session, start)
          const versions: Array<number> = []
          for (let event = yield* next(reader); event.event === "notification"; event = yield* next(reader)) {
            versions.push(versionOf(event))
          }
          assert.deepStrictEqual(versions, Array.from({ length: 600 }, (_, i) => i + 2))
          yield* reader.cut
        }))

      it.effect("a stream ends with its client, and an account has at most ten", () =>
        Effect.gen(function* () {
          const { session } = yield* newcomer
          const readers = yield* Effect.forEach(Array.from({ length: 10 }), () => follow(session), { concurrency: 10 })
          const refused = yield* call("GET", "/v1/notifications/stream", session)
          assert.deepStrictEqual([refused.status, refused.body.code], [429, "rate_limited"])
          assert.isNotNull(refused.headers.get("retry-after"))
          yield* readers[0]!.cut
          yield* until(Effect.map(follow(session), ({ status }) => status === 200))
          for (const reader of readers) yield* reader.cut
          const head = yield* Effect.flatMap(
            newcomer,
            (other) => call("HEAD", "/v1/notifications/stream", other.session),
          )
          assert.strictEqual(head.status, 200)
        }))

      it.effect("no stream is left of closed clients", () =>
        Effect.gen(function* () {
          const live = yield* Live
          const { session } = yield* newcomer
          const before = yield* live.count
          const readers = yield* Effect.forEach(Array.from({ length: 8 }), () => follow(session))
          assert.isAtLeast(yield* live.count, before)
          for (const reader of readers) yield* Effect.andThen(next(reader), reader.cut)
          const began = yield* Clock.currentTimeMillis
          yield* until(Effect.map(live.count, (count) => count <= before))
          assert.isBelow((yield* Clock.currentTimeMillis) - began, 12_000)
        }))

      it.effect("a stream needs a credential, and accepts none of another kind", () =>
        Effect.gen(function* () {
          const none = yield* call("GET", "/v1/notifications/stream")
          assert.deepStrictEqual([none.status, none.body.code], [401, "invalid_credentials"])
        }))
    },
  )
}
