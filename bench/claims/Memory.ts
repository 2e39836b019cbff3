import type { Claim } from "../harness/Claim.ts"
import { Effect } from "effect"
export const memory: Claim = {
  name: "memory",
  title: "",
  measure: () => Effect.succeed({ tables: [], notes: [], raw: null }),
}
