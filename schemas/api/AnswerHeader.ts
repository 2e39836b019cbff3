/** Describes a header of a successful answer in the document: the contract's schemas describe bodies only. */
import { OpenApi } from "effect/http-api"

/** `.annotate(OpenApi.Transform, answerHeader(201, "ETag", "…"))` */
export const answerHeader =
  (status: number, name: string, description: string): (typeof OpenApi.Transform)["Service"] => (operation) => {
    const answer = operation["responses"][status]
    const headers = { ...answer.headers, [name]: { description, schema: { type: "string" } } }
    return { ...operation, responses: { ...operation["responses"], [status]: { ...answer, headers } } }
  }
