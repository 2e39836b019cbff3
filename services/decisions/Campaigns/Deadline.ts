/** The deadline that is asked for a campaign. */
import { Effect } from "effect"
import { HTTPValidationError } from "../../../schemas/Validation.ts"

const longest = 366 * 86_400_000

/** 422 where it is not in the future, or too long after the campaign's beginning. Times are milliseconds since 1970. */
export const deadlineOf = (asked: string, begun: number, now: number): Effect.Effect<Date, HTTPValidationError> => {
  const end = Date.parse(asked.toUpperCase())
  const at = ["body", "deadline"]
  if (end <= now) return Effect.fail(HTTPValidationError.at(at, "datetime_future", "Input should be in the future"))
  return end - begun > longest
    ? Effect.fail(HTTPValidationError.at(at, "value_error", "Value error, a campaign lasts 366 days at most"))
    : Effect.succeed(new Date(end))
}
