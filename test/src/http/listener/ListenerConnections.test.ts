import { expect, it } from "vitest"
import { type Connection, headerTicks, ListenerConnections } from "../../../../src/http/listener/ListenerConnections.ts"
import { connectionsBelow, descriptorLimit } from "../../../../src/http/listener/Descriptors.ts"

const table = (max: number) => {
  const connections = new ListenerConnections(max)
  const ended: Array<string> = []
  const open = (name: string): Connection => {
    const connection = connections.opened(() => ended.push(name), () => ended.push(`${name} finished`))
    if (connection === null) throw new Error(`no room for ${name}`)
    return connection
  }
  const tick = (times: number) => {
    for (let i = 0; i < times; i++) connections.tick()
  }
  return { connections, ended, open, tick, refused: () => connections.opened(() => {}) === null }
}

it("a late half-open connection is closed first, then the longest idle, then a young half-open one", () => {
  const { connections, ended, open, refused, tick } = table(4)
  const [a, b] = [open("a"), open("b")]
  open("late")
  tick(2)
  open("young")
  connections.requested(a)
  connections.requested(b)
  connections.answered(b)
  connections.answered(a)
  connections.requested(open("c"))
  expect(ended).toEqual(["late"])
  connections.requested(open("d"))
  expect(ended).toEqual(["late", "b"])
  connections.requested(open("e"))
  expect(ended).toEqual(["late", "b", "a"])
  connections.requested(open("f"))
  expect(ended).toEqual(["late", "b", "a", "young"])
  expect(refused()).toBe(true)
  expect([connections.size, connections.report(), connections.report()]).toEqual([4, 5, 0])
})

it("a connection without a whole header is closed at the deadline, before and between requests", () => {
  const { connections, ended, open, tick } = table(10)
  open("never")
  const kept = open("kept")
  const busy = open("busy")
  connections.requested(busy)
  tick(5)
  connections.requested(kept)
  connections.answered(kept)
  tick(headerTicks - 5)
  expect(ended).toEqual([])
  tick(1)
  expect(ended).toEqual(["never"])
  tick(headerTicks)
  expect(ended).toEqual(["never", "kept"])
  connections.answered(busy)
  tick(headerTicks)
  expect(ended).toEqual(["never", "kept"])
  tick(1)
  expect(ended).toEqual(["never", "kept", "busy"])
})

it("a long answer gets time to be sent", () => {
  const { connections, ended, open, tick } = table(10)
  const reader = open("reader")
  connections.requested(reader)
  connections.answered(reader, 160 * 1024)
  tick(headerTicks + 10)
  expect(ended).toEqual([])
  tick(1)
  expect(ended).toEqual(["reader"])
})

it("a connection whose client does not read is closed in the end, a stream never", () => {
  const { connections, ended, open, refused, tick } = table(2)
  const [stuck, stream] = [open("stuck"), open("stream")]
  connections.requested(stream)
  connections.requested(stuck, () => true)
  tick(headerTicks)
  expect(refused()).toBe(true)
  tick(1)
  open("new")
  expect(ended).toEqual(["stuck"])
})

const uploads = (max: number) => {
  const opened = table(max)
  const { connections, ended, open } = opened
  const upload = (name: string, caller: string) => {
    const connection = open(name)
    connections.requested(connection)
    return { connection, arrived: connections.awaits(connection, caller, () => ended.push(`${name} given up`)) }
  }
  return { ...opened, upload }
}

it("the slowest body of the caller with most of them gives way first, and what is left of it is cut", () => {
  const { connections, ended, open, refused, tick, upload } = uploads(16)
  const { connection: b1 } = upload("b1", "b")
  const [a1] = Array.from({ length: 15 }, (_, n) => upload(`a${n + 1}`, "a"))
  connections.requested(open("c"))
  connections.requested(open("d"))
  expect(ended).toEqual(["a1 given up", "a2 given up"])
  a1!.arrived()
  connections.answered(a1!.connection)
  connections.gone(a1!.connection)
  tick(1)
  expect(ended).toEqual(["a1 given up", "a2 given up"])
  tick(1)
  expect(ended).toEqual(["a1 given up", "a2 given up", "a2"])
  connections.answered(b1)
  expect([connections.size, refused()]).toEqual([16, false])
})

it("young bodies give way only where their caller has more than a quarter of the connections", () => {
  const { connections, ended, open, refused, tick, upload } = uploads(4)
  upload("a", "a")
  const { arrived, connection: b } = upload("b", "b")
  connections.requested(open("c"))
  connections.requested(open("d"))
  expect(refused()).toBe(true)
  arrived()
  tick(2)
  connections.requested(open("e"))
  expect(ended).toEqual(["a given up"])
  expect(refused()).toBe(true)
  // Another request of the same connection is answered meanwhile, over HTTP/2.
  connections.requested(b)
  connections.awaits(b, "b", () => ended.push("b given up"))
  expect(refused()).toBe(true)
  connections.answered(b)
  connections.requested(open("f"))
  expect(ended).toEqual(["a given up", "a", "b given up"])
})

it("a stop gives up incomplete bodies, those of later requests with the idle connections", () => {
  const { connections, ended, upload } = uploads(8)
  upload("a", "a").arrived()
  upload("b", "b")
  connections.stop()
  expect(ended).toEqual(["b given up"])
  const { connections: others, ended: theirs, open } = uploads(8)
  const late = open("late")
  others.stop()
  others.requested(late)
  others.awaits(late, "c", (stopping) => theirs.push(`late given up, ${stopping}`))
  others.finishIdle()
  expect(theirs).toEqual(["late given up, true"])
})

it("few connections beyond the limit wait for their last answer to be sent", () => {
  const { connections, ended, open, upload } = uploads(8)
  for (let n = 1; n <= 8; n++) upload(`a${n}`, "a")
  connections.requested(open("b"))
  connections.requested(open("c"))
  expect(ended).toEqual(["a1 given up", "a1", "a2 given up"])
  expect(connections.size).toBe(9)
})

it("on stop busy connections end with their answer, and idle ones when told", async () => {
  const { connections, ended, open, refused } = table(10)
  const [a, b] = [open("a"), open("b")]
  open("c")
  for (const connection of [a, b]) connections.requested(connection)
  connections.answered(a)
  connections.stop()
  connections.answered(b)
  expect([ended, refused()]).toEqual([["b finished"], true])
  connections.finishIdle()
  expect(ended).toEqual(["b finished", "c", "a finished", "b finished"])
  const empty = connections.empty()
  connections.gone(a)
  connections.gone(b)
  await empty
  expect(connections.size).toBe(0)
})

it("the limit of connections is below that of descriptors", () => {
  expect([64, 300, 1_024, 4_096, 20_000, Infinity].map(connectionsBelow)).toEqual([32, 150, 512, 2_560, 16_384, 16_384])
  expect(descriptorLimit()).toBeGreaterThan(0)
})
