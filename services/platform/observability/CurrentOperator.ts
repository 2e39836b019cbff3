/** The operator for whom a command runs; the audit's records of it name the operator. */
import { Context } from "effect"

export class CurrentOperator extends Context.Reference<string>(
  "bailiwick/services/platform/observability/CurrentOperator",
  {
    /** For commands that name no operator. */
    defaultValue: () => "operator",
  },
) {}
