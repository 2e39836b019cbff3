import type { Claim } from "../harness/Claim.ts"
import { Effect } from "effect"
export const latency: Claim = {
  name: "latency",
  title: "",
  measure: () => Effect.succeed({ tables: [], notes: [], raw: null }),
}
