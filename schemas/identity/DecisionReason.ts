/** The reason of a decision: 8 to 500 code points, in every body of the identity API. */
import { Schema } from "effect"
import { Text } from "../Validation/Scalars.ts"

export const DecisionReason = Text(8, 500)

/** A body with a reason alone. */
export const ReasonBody = Schema.Struct({ reason: DecisionReason }).annotate({ identifier: "Reason" })
