import type { Claim } from "../harness/Claim.ts"
import { Effect } from "effect"
export const reads: Claim = {
  name: "reads",
  title: "",
  measure: () => Effect.succeed({ tables: [], notes: [], raw: null }),
}
