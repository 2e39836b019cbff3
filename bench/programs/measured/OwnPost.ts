/** One delivery by the product's own sender: the same two HMACs, the same headers, one POST by Outbound. */
import "../../../src/process/HideAsyncHooks.ts"
import { Context, Effect, Layer, Scope } from "effect"
import { Outbound } from "../../../services/platform/Outbound.ts"
import { headersOf, type Job } from "../contenders/UndiciPost.ts"

/** Lives as long as the process. */
const outbound = Effect.runSync(Scope.provide(
  Effect.map(
    Layer.build(Outbound.layer({
      allowedCidrs: ["127.0.0.0/8"],
      certificateAuthorities: [],
      timeoutMillis: 10_000,
      ownPorts: [],
    })),
    Context.get(Outbound),
  ),
  Effect.runSync(Scope.make()),
))

/** Fails where the receiver does not answer 2xx. */
export const ownPost = async (job: Job): Promise<void> => {
  const { body, url } = job
  const outcome = await outbound.post({
    url,
    headers: headersOf(job),
    body,
    keepOnSuccess: 4_096,
    keepOnFailure: 65_536,
  })
  if (outcome.status !== 200) throw new Error(`answered ${outcome.status}, ${outcome.error}`)
}
