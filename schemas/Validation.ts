/**
 * The 422 of both APIs: FastAPI's `HTTPValidationError`, with every fault of a request at once (docs/api/identity.md).
 * Validation/Translate.ts makes faults of Effect's issues; Validation/Scalars.ts has the scalars that follow pydantic's
 * rules.
 */
import { Schema } from "effect"

/**
 * One fault: its location (`loc`), its kind (`type`, `msg`, `ctx`) and, where it is not secret, the value that was
 * sent.
 */
export const ValidationError = Schema.Struct({
  type: Schema.String,
  loc: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  msg: Schema.String,
  input: Schema.optionalKey(Schema.Unknown),
  ctx: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
}).annotate({ identifier: "ValidationError" })

/**
 * 422. A handler fails with it for faults that only the state shows: `HTTPValidationError.at(["body", "proof"], …)`.
 */
export class HTTPValidationError extends Schema.Error<HTTPValidationError>("HTTPValidationError")({
  detail: Schema.Array(ValidationError),
}, { description: "Validation Error", httpApiStatus: 422 }) {
  /** One fault that our own code found; the value is not repeated. */
  static at(loc: ReadonlyArray<string | number>, type: string, msg: string): HTTPValidationError {
    return new HTTPValidationError({ detail: [{ loc, msg, type }] })
  }
}

/** The two schemas as FastAPI writes them into an OpenAPI document; they replace ours there, word for word. */
export const fastApiSchemas = {
  HTTPValidationError: {
    title: "HTTPValidationError",
    type: "object",
    properties: {
      detail: { title: "Detail", type: "array", items: { $ref: "#/components/schemas/ValidationError" } },
    },
  },
  ValidationError: {
    title: "ValidationError",
    type: "object",
    required: ["loc", "msg", "type"],
    properties: {
      loc: { title: "Location", type: "array", items: { anyOf: [{ type: "string" }, { type: "integer" }] } },
      msg: { title: "Message", type: "string" },
      type: { title: "Error Type", type: "string" },
      input: { title: "Input" },
      ctx: { title: "Context", type: "object" },
    },
  },
}
