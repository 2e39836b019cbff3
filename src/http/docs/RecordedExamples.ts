/**
 * A request and its answer for each operation, recorded from a run of the tests by `deno task examples`. They stand
 * outside of the OpenAPI document, which would be twice as large with them.
 */
import recorded from "./RecordedExamples.json" with { type: "json" }
import type { DocumentJson } from "./DocumentJson.ts"

export interface RecordedExample {
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers: Readonly<Record<string, string>>
    readonly body?: DocumentJson
  }
  readonly answer: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    /** Text where the answer is no JSON, as the beginning of a stream. */
    readonly body?: DocumentJson
  }
}

/** By the document's id of the operation. */
export const examples = recorded as Readonly<Record<string, RecordedExample>>

/** Where an example is served: all of it, or one body alone. */
export const examplePath = (operation: string, part?: "request" | "answer"): string =>
  `/v1/openapi/examples/${operation}${part === undefined ? "" : `.${part}`}.json`
