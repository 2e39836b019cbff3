/** Which delivery may be sent when, against a model that counts reserved, waiting and active ones by itself. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { AccountId, WebhookId } from "../../../../schemas/BrandedIds.ts"
import type { SlotLimits } from "../../../../services/webhooks/Sender/SlotLimits.ts"
import { ConcurrencyLimiter } from "../../../../services/webhooks/Sender/ConcurrencyLimiter.ts"
import type { WakeUp } from "../../../../services/webhooks/Sender/SenderQueues.ts"
import { type Job, SimpleSlots } from "./SimpleSlots.ts"
import { runs } from "../../../support/Runs.ts"

const limits: SlotLimits = { active: 6, claimed: 40, perHost: 5, perSilentHost: 2 }

/** Webhook n belongs to account n mod 3 and is served by host n mod 4. */
const jobOf = (n: number): Job => ({
  webhookId: WebhookId.make(`w${n}`),
  accountId: AccountId.make(`a${n % 3}`),
  host: `h${n % 4}`,
})

/** The guarantees in the header of ConcurrencyLimiter, counted independently. */
class Model {
  readonly slots = new ConcurrencyLimiter<Job>(limits)
  reserved = new Map<WebhookId, number>()
  waiting = new Map<WebhookId, number>()
  active: Array<Job> = []
  windows = new Map<string, number>()
  answers = new Map<string, boolean>()
  unsettled = 0
  closed = false

  count(of: (job: Job) => boolean) {
    return this.active.filter(of).length
  }
  silent() {
    return this.count(({ host }) => this.answers.get(host) !== true)
  }
  window(webhookId: WebhookId) {
    return this.windows.get(webhookId) ?? 16
  }
  bump(map: Map<WebhookId, number>, key: WebhookId, by: number) {
    map.set(key, (map.get(key) ?? 0) + by)
  }
  admissible(job: Job) {
    if (this.active.length >= limits.active) return false
    if (this.count((j) => j.webhookId === job.webhookId) >= this.window(job.webhookId)) return false
    const on = this.count((j) => j.host === job.host)
    if (this.answers.get(job.host) === true) return on < limits.perHost
    return on < limits.perSilentHost && this.silent() < limits.active / 2
  }
  start(job: Job) {
    assert.isTrue(this.admissible(job), "exceeded a limit")
    this.bump(this.waiting, job.webhookId, -1)
    this.active.push(job)
  }
  pump() {
    for (let job = this.slots.next(0); job !== undefined; job = this.slots.next(0)) this.start(job)
    for (const [webhookId, n] of this.waiting) {
      if (n > 0) assert.isFalse(this.admissible(jobOf(Number(webhookId.slice(1)))), `${webhookId} was left waiting`)
    }
  }
  end(answered: boolean | null, at: number) {
    const [job] = this.active.splice(at % this.active.length, 1)
    this.slots.done(job!, answered)
    if (answered === null) return
    this.answers.set(job!.host, answered)
    const window = this.window(job!.webhookId)
    this.windows.set(job!.webhookId, answered ? Math.min(128, window + 1) : Math.max(1, window >> 1))
  }
  claimed() {
    const sum = (map: Map<string, number>) => [...map.values()].reduce((a, b) => a + b, 0)
    return sum(this.reserved) + sum(this.waiting) + this.active.length
  }
  check() {
    assert.deepStrictEqual(this.slots.load, { claimed: this.claimed(), active: this.active.length })
    assert.isAtMost(this.claimed(), limits.claimed)
    assert.strictEqual(
      this.slots.spare,
      this.closed ? 0 : Math.max(0, limits.claimed - this.claimed() - this.unsettled),
    )
  }
}

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("reserve" as const),
      n: fc.nat(7),
      wanted: fc.integer({ min: 1, max: 30 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("add" as const), n: fc.nat(7), wanted: fc.integer({ min: 1, max: 30 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("drop" as const), n: fc.nat(7), wanted: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("pump" as const), n: fc.constant(0), wanted: fc.constant(0) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("answer" as const, "silence" as const, "nothing" as const),
      n: fc.nat(100),
      wanted: fc.nat(8),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("hold" as const), n: fc.nat(45), wanted: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("drain" as const), n: fc.constant(0), wanted: fc.constant(0) }) },
)

const run = (model: Model, { do: what, n, wanted }: typeof step extends fc.Arbitrary<infer S> ? S : never) => {
  const job = jobOf(n)
  const reserved = model.reserved.get(job.webhookId) ?? 0
  if (what === "reserve") {
    const room = model.slots.room(job.webhookId)
    const got = model.slots.reserve(job.webhookId, job.accountId, wanted)
    assert.strictEqual(got, Math.min(wanted, room))
    assert.isAtMost(got, model.closed ? 0 : Math.max(0, limits.claimed - model.claimed() - model.unsettled))
    model.bump(model.reserved, job.webhookId, got)
  } else if (what === "add") {
    const some = Math.min(wanted, reserved)
    for (let i = 0; i < some; i++) model.slots.add(job)
    model.bump(model.reserved, job.webhookId, -some)
    model.bump(model.waiting, job.webhookId, some)
  } else if (what === "drop") {
    const some = Math.min(wanted, reserved)
    model.slots.drop(job.webhookId, some)
    model.bump(model.reserved, job.webhookId, -some)
  } else if (what === "hold") {
    model.unsettled = n
    model.closed = wanted === 0
    model.slots.setUnsettled(model.unsettled, model.closed)
  } else if (what === "pump") model.pump()
  else if (what === "drain") {
    for (const { webhookId } of model.slots.drain()) model.bump(model.waiting, webhookId, -1)
    assert.isTrue([...model.waiting.values()].every((left) => left === 0))
  } else {
    for (let i = 0; i <= wanted && model.active.length > 0; i++) {
      model.end(what === "nothing" ? null : what === "answer", n)
    }
  }
  model.check()
}

const fill = (slots: ConcurrencyLimiter<Job>, job: Job, n: number) => {
  const got = slots.reserve(job.webhookId, job.accountId, n)
  for (let i = 0; i < got; i++) slots.add(job)
  return got
}
const pumpAll = (slots: ConcurrencyLimiter<Job>) => {
  const started: Array<Job> = []
  for (let job = slots.next(0); job !== undefined; job = slots.next(0)) started.push(job)
  return started
}

describe("ConcurrencyLimiter", () => {
  it("unsettled results reduce what may be claimed; a closed limiter claims nothing", () => {
    const slots = new ConcurrencyLimiter<Job>({ ...limits, claimed: 40 })
    const job = jobOf(1)
    slots.setUnsettled(35, false)
    assert.strictEqual(slots.reserve(job.webhookId, job.accountId, 16), 5)
    assert.deepStrictEqual(slots.topUp(64), [])
    slots.setUnsettled(20, false)
    assert.deepStrictEqual(slots.topUp(64).map(({ count }) => count), [5])
    slots.setUnsettled(0, true)
    assert.deepStrictEqual([
      slots.reserve(WebhookId.make("w2"), AccountId.make("a2"), 1),
      slots.spare,
      slots.topUp(64).length,
    ], [
      0,
      0,
      0,
    ])
    slots.setUnsettled(0, false)
    assert.strictEqual(slots.reserve(WebhookId.make("w2"), AccountId.make("a2"), 1), 1)
  })

  it("keeps all limits and counts in any history, and starts each task that may start", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120, size: "max" }), (steps) => {
        const model = new Model()
        for (const one of steps) run(model, one)
        for (const [webhookId, n] of model.reserved) model.slots.drop(webhookId, n)
        model.reserved.clear()
        for (let rounds = 0; model.claimed() > 0 && rounds < 2_000; rounds++) {
          model.pump()
          if (model.active.length > 0) model.end(rounds % 3 !== 0, rounds)
        }
        model.check()
        assert.deepStrictEqual(model.slots.load, { claimed: 0, active: 0 })
      }),
      { numRuns: runs(300) },
    )
  })

  it("an endpoint that answered starts at once, whatever the number of silent ones", () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 5 }), (holes, times) => {
      const slots = new ConcurrencyLimiter<Job>({ ...limits, claimed: 10_000 })
      const healthy: Job = { webhookId: WebhookId.make("good"), accountId: AccountId.make("good"), host: "good" }
      fill(slots, healthy, 1)
      slots.done(slots.next(0)!, true)
      for (let i = 0; i < holes; i++) {
        fill(slots, { webhookId: WebhookId.make(`b${i}`), accountId: AccountId.make(`b${i % 7}`), host: `b${i}` }, 16)
      }
      const dark = pumpAll(slots)
      assert.isAtMost(dark.length, limits.active / 2)
      for (let i = 0; i < times; i++) {
        fill(slots, healthy, 1)
        const next = slots.next(0)
        assert.deepStrictEqual(next, healthy)
        slots.done(next!, true)
      }
    }))
  })

  it("keeps at most 20,000 idle webhooks, destinations and backlogs", () => {
    const slots = new ConcurrencyLimiter<Job>({ active: 100, claimed: 100, perHost: 100, perSilentHost: 100 })
    for (let n = 0; n < 21_000; n++) {
      const job = { accountId: AccountId.make(`a${n}`), webhookId: WebhookId.make(`w${n}`), host: `h${n}` }
      // More is due than there is room for, so it has a backlog.
      fill(slots, job, 1)
      slots.markBacklogged(job.webhookId, job.accountId)
      slots.done(slots.next(0)!, true)
    }
    assert.deepStrictEqual(slots.load, { claimed: 0, active: 0 })
    assert.deepStrictEqual(slots.sizes, { queues: 20_000, hosts: 20_000, backlogged: 20_000 })
    // Topping up all of them leaves no backlog behind.
    while (slots.mayTopUp) {
      for (const { count, webhookId } of slots.topUp(100)) slots.drop(webhookId, count)
    }
    assert.strictEqual(slots.sizes.backlogged, 0)
  })

  it("accounts take turns, and the webhooks of an account within its turn", () => {
    const slots = new ConcurrencyLimiter<Job>({ active: 100, claimed: 1_000, perHost: 100, perSilentHost: 100 })
    const job = (accountId: AccountId, webhookId: WebhookId) => ({ accountId, webhookId, host: webhookId })
    fill(slots, job(AccountId.make("a"), WebhookId.make("a1")), 6)
    fill(slots, job(AccountId.make("a"), WebhookId.make("a2")), 6)
    fill(slots, job(AccountId.make("b"), WebhookId.make("b1")), 3)
    const order = pumpAll(slots).map(({ webhookId }) => webhookId)
    assert.deepStrictEqual(order.slice(0, 6), ["a1", "b1", "a2", "b1", "a1", "b1"])
    assert.lengthOf(order, 15)
  })

  it("the window halves on silence down to one, grows by one on an answer up to 128, and limits the claims", () => {
    const slots = new ConcurrencyLimiter<Job>()
    const job = jobOf(1)
    assert.strictEqual(slots.room(WebhookId.make("w1")), 16)
    for (const left of [8, 4, 2, 1, 1]) {
      fill(slots, job, 1)
      slots.done(slots.next(0)!, false)
      assert.strictEqual(slots.room(WebhookId.make("w1")), left)
    }
    fill(slots, job, 1)
    slots.done(slots.next(0)!, true)
    assert.strictEqual(slots.room(WebhookId.make("w1")), 2 * 4)
    for (let i = 0; i < 200; i++) {
      fill(slots, job, 1)
      slots.done(slots.next(0)!, true)
    }
    assert.strictEqual(slots.room(WebhookId.make("w1")), 128 * 4)
  })

  it("a webhook that could not claim all is backlogged, and topped up once half a window is free", () => {
    const slots = new ConcurrencyLimiter<Job>()
    assert.strictEqual(fill(slots, jobOf(1), 20), 16)
    assert.isTrue(slots.mayTopUp)
    assert.deepStrictEqual(slots.topUp(100), [])
    const started = pumpAll(slots)
    for (const job of started) slots.done(job, true)
    assert.deepStrictEqual(slots.topUp(100), [{
      webhookId: WebhookId.make("w1"),
      accountId: AccountId.make("a1"),
      count: 32,
    }])
    assert.deepStrictEqual(slots.topUp(100), [])
    assert.isFalse(slots.mayTopUp)
    slots.drop(WebhookId.make("w1"), 32)
    assert.deepStrictEqual(slots.load, { claimed: 0, active: 0 })
  })

  it("a batch is shared by accounts, and the next one goes to webhooks without a share", () => {
    const slots = new ConcurrencyLimiter<Job>()
    for (const id of ["p", "q", "r"]) slots.markBacklogged(WebhookId.make(id), AccountId.make("many"))
    slots.markBacklogged(WebhookId.make("s"), AccountId.make("few"))
    const ids = (reserved: ReadonlyArray<{ readonly webhookId: WebhookId; readonly count: number }>) =>
      reserved.map(({ count, webhookId }) => [webhookId, count])
    assert.deepStrictEqual(ids(slots.topUp(8)), [["p", 4], ["s", 4]])
    slots.markBacklogged(WebhookId.make("p"), AccountId.make("many"))
    assert.deepStrictEqual(ids(slots.topUp(2)), [["q", 2]])
    assert.deepStrictEqual(ids(slots.topUp(20)), [["r", 16], ["p", 4]])
  })

  it("a backlog is topped up while first tries wait in memory, but not while many retries do", () => {
    const slots = new ConcurrencyLimiter<Job>()
    const job = jobOf(1)
    fill(slots, job, 1)
    slots.done(slots.next(0)!, true)
    assert.strictEqual(fill(slots, job, 40), 40)
    slots.markBacklogged(WebhookId.make("w1"), AccountId.make("a1"))
    assert.deepStrictEqual(slots.topUp(12), [{
      webhookId: WebhookId.make("w1"),
      accountId: AccountId.make("a1"),
      count: 12,
    }])
    for (let n = 0; n < 12; n++) slots.add({ ...job, later: true })
    slots.markBacklogged(WebhookId.make("w1"), AccountId.make("a1"))
    assert.deepStrictEqual(slots.topUp(5).map(({ count }) => count), [5])
    for (let n = 0; n < 5; n++) slots.add({ ...job, later: true })
    slots.markBacklogged(WebhookId.make("w1"), AccountId.make("a1"))
    assert.deepStrictEqual(slots.topUp(12), [])
  })

  it("first tries have a quarter of the slots; while they wait, later tries get one send in eight", () => {
    const slots = new ConcurrencyLimiter<Job>({
      active: 40,
      claimed: 400,
      perHost: 100,
      perSilentHost: 100,
    })
    const job = (accountId: AccountId, later: boolean) => ({
      accountId,
      webhookId: WebhookId.make(accountId),
      host: "one",
      later,
    })
    const put = (accountId: AccountId, later: boolean, n: number) => {
      slots.reserve(WebhookId.make(accountId), accountId, n)
      for (let i = 0; i < n; i++) slots.add(job(accountId, later))
    }
    slots.reserve(WebhookId.make("known"), AccountId.make("known"), 1)
    slots.add(job(AccountId.make("known"), false))
    slots.done(slots.next(0)!, true)
    for (const account of ["x", "y", "z"]) put(AccountId.make(account), true, 16)
    const all = () => {
      const started: Array<Job> = []
      for (let next = slots.next(0); next !== undefined; next = slots.next(0)) started.push(next)
      return started
    }
    // A quarter is reserved for first tries.
    const before = all()
    assert.lengthOf(before, 30)
    put(AccountId.make("f"), false, 12)
    const then = all()
    assert.lengthOf(then, 10)
    assert.isTrue(then.every(({ accountId }) => accountId === "f"))
    for (const task of [...before, ...then]) slots.done(task, true)
    for (let n = 0; n < 4; n++) put(AccountId.make("f"), false, 10)
    const mixed = all()
    assert.deepStrictEqual(mixed.slice(0, 16).map(({ later }) => later === true).indexOf(true) < 8, true)
    assert.isAtLeast(mixed.filter(({ later }) => later === true).length, Math.floor(mixed.length / 8))
    assert.isAtMost(mixed.filter(({ later }) => later === true).length, Math.ceil(mixed.length / 8) + 1)
  })

  it("sends exactly when the simple model finds a task that may be sent", () => {
    const deed = fc.record({
      n: fc.nat(11),
      later: fc.boolean(),
      host: fc.nat(4),
      what: fc.nat(9),
      at: fc.nat(100),
      rate: fc.constantFrom(null, 1, 2, 5),
      millis: fc.oneof(fc.constant(0), fc.nat(300)),
    })
    fc.assert(
      fc.property(fc.array(deed, { maxLength: 200, size: "max" }), (deeds) => {
        const slots = new ConcurrencyLimiter<Job>({ ...limits, claimed: 10_000 })
        const simple = new SimpleSlots(limits)
        const wire: Array<Job> = []
        const waiting: Array<Job> = []
        let now = 0
        let sleeps: Array<WakeUp> = []
        const sleep = (millis: number) => {
          now += millis
          const [over, still] = [sleeps.filter(({ at }) => at <= now), sleeps.filter(({ at }) => at > now)]
          sleeps = still
          for (const wakeUp of over) slots.woken(wakeUp, now)
        }
        const pump = () => {
          for (let job = slots.next(now); job !== undefined; job = slots.next(now)) {
            assert.isTrue(simple.admits(job, now), "exceeded a limit")
            simple.start(job, now)
            waiting.splice(waiting.indexOf(job), 1)
            wire.push(job)
          }
          sleeps.push(...slots.wakeUps())
          assert.isUndefined(simple.next(now), "left a task waiting that may be sent")
        }
        const end = (at: number, answered: boolean | null) => {
          const [job] = wire.splice(at % wire.length, 1)
          slots.done(job!, answered)
          simple.done(job!, answered)
        }
        for (const { at, host, later, millis, n, rate, what } of deeds) {
          sleep(millis)
          if (what < 5) {
            // A webhook's URL and rate may change while some of its deliveries wait.
            const own = { rate: n < 6 ? null : what < 4 ? n - 5 : rate }
            const job = {
              webhookId: WebhookId.make(`w${n}`),
              accountId: AccountId.make(`a${n % 3}`),
              host: `h${what < 4 ? n % 5 : host}`,
              later,
              ...own,
            }
            if (slots.reserve(job.webhookId, job.accountId, 1) === 0) continue
            slots.add(job)
            simple.add(job)
            waiting.push(job)
          } else if (wire.length > 0) end(at, what === 5 ? null : what > 6)
          if (at % 3 > 0) pump()
        }
        for (let rounds = 0; wire.length + waiting.length > 0; rounds++) {
          pump()
          if (wire.length > 0) end(rounds, rounds % 3 !== 0)
          else sleep(100)
        }
        assert.deepStrictEqual(slots.load, { claimed: 0, active: 0 })
        // Nothing is remembered of a rate for longer than its second.
        while (sleeps.length > 0) {
          sleep(1_000)
          pump()
          assert.isBelow(now, 1_000_000)
        }
      }),
      { numRuns: runs(500) },
    )
  })

  it("a webhook with a rate claims what it may begin in two seconds, however much is on the wire", () => {
    const slots = new ConcurrencyLimiter<Job>({ active: 400, claimed: 400, perHost: 400, perSilentHost: 400 })
    const job = { ...jobOf(1), rate: 3 }
    slots.reserve(WebhookId.make("w1"), AccountId.make("a1"), 1)
    slots.add(job)
    assert.strictEqual(fill(slots, job, 16), 5)
    assert.lengthOf(pumpAll(slots), 3)
    assert.deepStrictEqual(slots.wakeUps(), [{ webhookId: WebhookId.make("w1"), at: 1_000 }])
    // Three wait, three more may; half a window would be eight, which it never has room for.
    assert.deepStrictEqual(slots.topUp(100), [{
      webhookId: WebhookId.make("w1"),
      accountId: AccountId.make("a1"),
      count: 3,
    }])
  })

  it("first tries of more than its rate leave room for a webhook's backlog", () => {
    const slots = new ConcurrencyLimiter<Job>()
    const job = { ...jobOf(1), rate: 5 }
    const replay = { ...job, later: true }
    fill(slots, job, 1)
    slots.done(slots.next(0)!, true)
    slots.markBacklogged(job.webhookId, job.accountId)
    let replayed = 0
    for (let second = 0; second < 20; second++) {
      // Seven first tries arrive in each second, of which five may begin.
      fill(slots, job, 7)
      for (const { accountId, count, webhookId } of slots.topUp(100)) {
        for (let n = 0; n < count; n++) slots.add(replay)
        slots.markBacklogged(webhookId, accountId)
      }
      for (const wakeUp of slots.wakeUps()) slots.woken(wakeUp, second * 1_000)
      for (let next = slots.next(second * 1_000); next !== undefined; next = slots.next(second * 1_000)) {
        if (next.later === true) replayed++
        slots.done(next, true)
      }
    }
    assert.isAtLeast(replayed, 10)
  })

  it("webhooks beside one that waits for its rate send at once, of its account as well", () => {
    const slots = new ConcurrencyLimiter<Job>()
    const slow = { webhookId: WebhookId.make("slow"), accountId: AccountId.make("a"), host: "one", rate: 1 }
    fill(slots, slow, 16)
    assert.lengthOf(pumpAll(slots), 1)
    for (
      const other of [{ ...slow, webhookId: WebhookId.make("fast"), rate: null }, {
        ...slow,
        webhookId: WebhookId.make("far"),
        host: "two",
      }]
    ) {
      fill(slots, other, 1)
      assert.deepStrictEqual(pumpAll(slots), [other])
    }
    assert.strictEqual(slots.load.active, 3)
  })

  it("each account gets more than about half of its share in the simple model", () => {
    const shape = fc.record({ webhooks: fc.integer({ min: 1, max: 12 }), shared: fc.boolean() })
    fc.assert(
      fc.property(fc.array(shape, { minLength: 2, maxLength: 5 }), fc.nat(7), (accounts, silence) => {
        const most = { active: 24, claimed: 100_000, perHost: 5, perSilentHost: 4 }
        const jobs = accounts.flatMap(({ shared, webhooks }, a) =>
          Array.from({ length: webhooks }, (_, n) => ({
            webhookId: WebhookId.make(`w${a}-${n}`),
            accountId: AccountId.make(`a${a}`),
            host: shared ? "gateway" : `h${a}-${n % 4}`,
          }))
        )
        const served = (slots: Pick<SimpleSlots, "add" | "next" | "done">) => {
          const counts = accounts.map(() => 0)
          const wire: Array<Job> = []
          for (const job of jobs) for (let n = 0; n < 8; n++) slots.add(job)
          for (let n = 0; n < 3_000; n++) {
            for (let job = slots.next(0); job !== undefined; job = slots.next(0)) {
              wire.push(job)
              counts[Number(job.accountId.slice(1))]!++
              slots.add(job)
            }
            const job = wire.shift()!
            // The shared gateway may be silent; the other hosts answer.
            slots.done(job, !(job.host === "gateway" && silence === 0))
          }
          return counts
        }
        const real = served(new ConcurrencyLimiter<Job>(most))
        const simple = served(new SimpleSlots(most))
        for (const [a, n] of real.entries()) {
          // An account's only webhook, with one send at a time, waits one turn more.
          assert.isAtLeast(n, simple[a]! * 0.55 - 40, `${real} instead of ${simple}`)
        }
      }),
      { numRuns: runs(60) },
    )
  })

  it("a send costs the same beside 3,800 webhooks that wait for a full destination as beside 100", () => {
    const looksOf = (webhooks: number, accounts: number) => {
      let looks = 0
      const slots = new ConcurrencyLimiter<Job>()
      for (let n = 0; n < webhooks; n++) {
        const job = {
          webhookId: WebhookId.make(`w${n}`),
          accountId: AccountId.make(`a${n % accounts}`),
          get host() {
            looks++
            return "gateway"
          },
        }
        fill(slots, job, 1)
      }
      const wire = pumpAll(slots)
      looks = 0
      for (let n = 0; n < 1_000; n++) {
        const job = wire.shift()!
        slots.done(job, true)
        fill(slots, job, 1)
        wire.push(...pumpAll(slots))
      }
      return looks / 1_000
    }
    for (const accounts of [1, 100, 3_800]) assert.isAtMost(looksOf(3_800, accounts), looksOf(100, 1) + 2)
    assert.isAtMost(looksOf(3_800, 3_800), 12)
  })

  it("a send costs little beside 3,800 webhooks that wait for destinations that do not answer", () => {
    let looks = 0
    const slots = new ConcurrencyLimiter<Job>()
    for (let n = 0; n < 3_800; n++) {
      const host = () => {
        looks++
        return `h${n % 1_900}`
      }
      fill(slots, {
        webhookId: WebhookId.make(`w${n}`),
        accountId: AccountId.make(`a${n % 700}`),
        get host() {
          return host()
        },
      }, 1)
    }
    const wire = pumpAll(slots)
    assert.lengthOf(wire, 256)
    looks = 0
    for (let n = 0; n < 1_000; n++) {
      slots.done(wire.shift()!, false)
      wire.push(...pumpAll(slots))
    }
    assert.lengthOf(wire, 256)
    assert.isAtMost(looks / 1_000, 12)
  })

  it("a batch costs what it claims, also with 10,000 backlogged webhooks", () => {
    let looks = 0
    const slots = new ConcurrencyLimiter<Job>({
      active: 512,
      perHost: 64,
      perSilentHost: 64,
      get claimed() {
        looks++
        return 400_000
      },
    })
    for (let n = 0; n < 10_000; n++) slots.markBacklogged(WebhookId.make(`w${n}`), AccountId.make(`a${n % 300}`))
    for (let n = 0; n < 100; n++) {
      looks = 0
      const reserved = slots.topUp(12)
      assert.lengthOf(reserved, 12)
      assert.isAtMost(looks, 40)
      for (const { accountId, webhookId } of reserved) slots.markBacklogged(webhookId, accountId)
    }
    // Ten thousand webhooks without free slots are checked once, and again when they change.
    for (let n = 0; n < 10_000; n++) slots.reserve(WebhookId.make(`w${n}`), AccountId.make(`a${n % 300}`), 17)
    while (slots.mayTopUp) slots.topUp(64)
    looks = 0
    assert.deepStrictEqual(slots.topUp(64), [])
    assert.isAtMost(looks, 4)
    slots.drop(WebhookId.make("w7"), 16)
    assert.deepStrictEqual(slots.topUp(64).map(({ webhookId }) => webhookId), ["w7"])
  })
})
