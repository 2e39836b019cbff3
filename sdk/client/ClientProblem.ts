/** Problems of the API (RFC 9457) as errors, one class for each code. */
import type { None, Problems, ValidationError } from "./Contract.ts"

/** Codes that the client gives itself: no answer came, the request did not decode, the answer is of another program. */
export interface ClientProblems {
  readonly unreachable: { readonly status: 0; readonly members: None }
  readonly validation_error: {
    readonly status: 422
    readonly members: { readonly detail?: ReadonlyArray<ValidationError> }
  }
  readonly unexpected_answer: { readonly status: number; readonly members: None }
}

type All = Problems & ClientProblems

/** The code of a problem, for example `webhook_limit`. */
export type ProblemCode = keyof All

/** A refusal of the API, or its absence: `status` is 0 where no answer came. */
export class Problem extends Error {
  readonly status: number
  /** The code is stable: it is never renamed. */
  readonly code: string
  /** The whole body: `request_id`, and what the code adds. */
  readonly members: Readonly<Record<string, unknown>>
  /** The seconds of Retry-After; undefined where the answer asks for no pause. */
  readonly retryAfter: number | undefined

  constructor(
    code: string,
    status: number,
    members: Readonly<Record<string, unknown>>,
    retryAfter?: number,
    cause?: unknown,
  ) {
    const { detail, title } = members
    super(String(typeof detail === "string" ? detail : title ?? `The answer was ${status}`), { cause })
    this.name = code
    this.code = code
    this.status = status
    this.members = members
    this.retryAfter = retryAfter
  }
}

/** A problem of one code. */
export type ProblemOf<Code extends ProblemCode> = Problem & {
  readonly code: Code
  readonly status: All[Code]["status"]
  readonly members: All[Code]["members"]
}

/** The class of a code: `error instanceof problems.webhook_limit`. */
export interface ProblemClass<Code extends ProblemCode> {
  readonly prototype: ProblemOf<Code>
  new (...args: ConstructorParameters<typeof Problem>): ProblemOf<Code>
}

const classes: Record<string, typeof Problem> = {}

/** The classes by their codes. A class is made when it is first named, so codes of newer servers have theirs as well. */
export const problems: { readonly [Code in ProblemCode]: ProblemClass<Code> } = new Proxy(classes, {
  get: (made, code: string) => made[code] ??= class extends Problem {},
}) as never

/** A problem as an instance of its class. */
export const problemOf = (...args: ConstructorParameters<typeof Problem>): Problem =>
  new (problems as never as Record<string, typeof Problem>)[args[0]]!(...args)
