/**
 * The cost of choosing the next send, and the next webhooks to claim for, with ever more waiting: looks and CPU of this
 * process. Counts show whether the cost grows; microseconds show how much it is.
 */
import { Effect } from "effect"
import process from "node:process"
import { AccountId, WebhookId } from "../../schemas/BrandedIds.ts"
import { defaultLimits } from "../../services/webhooks/Sender/SlotLimits.ts"
import { ConcurrencyLimiter } from "../../services/webhooks/Sender/ConcurrencyLimiter.ts"
import type { Claim } from "../harness/Claim.ts"
import { median, rounded } from "../harness/Figures.ts"

interface Figures {
  readonly looks: number
  readonly micros: number
}

const cycles = 20_000

/** Runs `cycle` many times and returns the cost of one; `looks` counts. */
const each = (looks: () => number, cycle: (n: number) => void): Figures => {
  const before = looks()
  const from = process.cpuUsage()
  for (let n = 0; n < cycles; n++) cycle(n)
  const { system, user } = process.cpuUsage(from)
  return { looks: (looks() - before) / cycles, micros: (system + user) / cycles }
}

/** Webhooks of as many accounts that share one destination, which has all its slots in use. */
const sending = (webhooks: number): Figures => {
  let looks = 0
  const slots = new ConcurrencyLimiter()
  const jobs = Array.from({ length: webhooks }, (_, n) => ({
    webhookId: WebhookId.make(`w${n}`),
    accountId: AccountId.make(`a${n}`),
    get host() {
      looks++
      return "gateway"
    },
  }))
  const put = (job: typeof jobs[number]) => {
    if (slots.reserve(job.webhookId, job.accountId, 1) === 1) slots.add(job)
  }
  const wire: Array<typeof jobs[number]> = []
  const pump = () => {
    for (let job = slots.next(0); job !== undefined; job = slots.next(0)) wire.push(job as typeof jobs[number])
  }
  for (const job of jobs) put(job)
  pump()
  return each(() => looks, () => {
    const job = wire.shift()!
    slots.done(job, true)
    put(job)
    pump()
  })
}

/** Webhooks with a backlog, of which each batch claims for some. */
const claiming = (webhooks: number): Figures => {
  let looks = 0
  const slots = new ConcurrencyLimiter({
    ...defaultLimits,
    get claimed() {
      looks++
      return defaultLimits.claimed
    },
  })
  for (let n = 0; n < webhooks; n++) slots.markBacklogged(WebhookId.make(`w${n}`), AccountId.make(`a${n % 100}`))
  return each(() => looks, () => {
    for (const { accountId, count, webhookId } of slots.topUp(12)) {
      slots.drop(webhookId, count)
      slots.markBacklogged(webhookId, accountId)
    }
  })
}

const sizes = [10, 100, 1_000, 3_800]
const backlogs = [10, 100, 1_000, 10_000]

export const slots: Claim = {
  name: "slots",
  title: "Choosing the next send and the next claims, with ever more waiting",
  measure: (run) =>
    Effect.sync(() => {
      const measured = (of: (n: number) => Figures, n: number) => {
        const rounds = Array.from({ length: run.rounds }, () => of(n))
        return { looks: rounds[0]!.looks, micros: median(rounds.map(({ micros }) => micros)) }
      }
      const table = (title: string, what: string, ns: ReadonlyArray<number>, of: (n: number) => Figures) => {
        const found = ns.map((n) => ({ n, ...measured(of, n) }))
        return {
          found,
          title,
          columns: [what, "looks", "CPU µs"],
          rows: found.map(({ looks, micros, n }) => [n, rounded(looks, 1), rounded(micros, 1)]),
        }
      }
      const tables = [
        table("One delivery, its destination full", "webhooks that wait for it", sizes, sending),
        table("One batch of 12", "webhooks with a backlog", backlogs, claiming),
      ]
      return {
        tables: tables.map(({ columns, rows, title }) => ({ title, columns, rows })),
        notes: ["A look reads one waiting delivery's destination, or the limit on all claims."],
        raw: tables.map(({ found, title }) => ({ title, found })),
      }
    }),
}
