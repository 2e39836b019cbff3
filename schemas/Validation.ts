/**
 * The 422 of both services: FastAPI's `HTTPValidationError`, with every fault of a request at once
 * (docs/api/identity.md). How issues become faults stands in Validation/Translate.ts, the scalars that follow
 * pydantic's rules in Validation/Scalars.ts.
 */
import { Schema } from "effect"

/** One fault: where (`loc`), what (`type`, `msg`, `ctx`) and, where it is not secret, the value that was sent. */
export const ValidationError = Schema.Struct({
  type: Schema.String,
  loc: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  msg: Schema.String,
  input: Schema.optionalKey(Schema.Unknown),
  ctx: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
}).annotate({ identifier: "ValidationError" })

/** 422. A handler fails with it for what only the state can judge: `HTTPValidationError.at(["body", "proof"], …)`. */
export class HTTPValidationError extends Schema.Error<HTTPValidationError>("HTTPValidationError")({
  detail: Schema.Array(ValidationError),
}, { description: "Validation Error", httpApiStatus: 422 }) {
  /** One fault of our own making; the value is not repeated. */
  static at(loc: ReadonlyArray<string | number>, type: string, msg: string): HTTPValidationError {
    return new HTTPValidationError({ detail: [{ loc, msg, type }] })
  }
}

/** The two schemas as FastAPI writes them into an OpenAPI document; ours are replaced by them, word for word. */
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
