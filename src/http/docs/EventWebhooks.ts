/** The document's `webhooks` (OpenAPI 3.1): the request that an endpoint receives for each of the eight events. */
import { catalogue } from "../../../schemas/mail/EventCatalogue.ts"
import type { DocumentJson, JsonObject } from "./DocumentJson.ts"
import { prefix } from "./DocumentJson.ts"

const header = (name: string, description: string, schema: JsonObject = { type: "string" }): JsonObject => ({
  name,
  in: "header",
  required: true,
  description,
  schema,
})

const parameters: JsonObject = {
  webhookId: header("webhook-id", "The delivery's id, the same on every attempt: drop repeats by it"),
  webhookTimestamp: header("webhook-timestamp", "The time of this attempt, in seconds since 1970"),
  webhookSignature: header(
    "webhook-signature",
    "`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`; two, separated by a space, in a rotation's overlap",
  ),
  bodySignature: header("x-webhook-signature", "HMAC-SHA256 of the body in hex, keyed with the whole secret"),
  webhookEvent: header("x-webhook-event", "The type, as in the body"),
  webhookDelivery: header("x-webhook-delivery", "The same as `webhook-id`"),
  webhookAttempt: header("x-webhook-attempt", "The number of the attempt", {
    type: "string",
    pattern: "^[1-8]$",
  }),
}

const responses: JsonObject = {
  "2XX": { description: "Taken" },
  default: { description: "Tried again, eight times in all" },
}

const pascal = (type: string) => type.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())

const webhook = (type: string, meaning: string, example: DocumentJson): JsonObject => ({
  post: {
    tags: ["Webhooks"],
    operationId: `on${pascal(type)}`,
    summary: meaning,
    description: `Sent to every webhook that takes \`${type}\`. Verify the signature before you read the body.`,
    security: [],
    parameters: Object.keys(parameters).map((name) => ({ "$ref": `#/components/parameters/${name}` })),
    requestBody: {
      required: true,
      content: { "application/json": { schema: { "$ref": `${prefix}WebhookBody` }, example } },
    },
    responses,
  },
})

/** The document with the section, where its contract has webhooks. */
export const withWebhooks = (spec: JsonObject): JsonObject => {
  const { components, ...rest } = spec
  const { schemas, parameters: others, ...more } = components as Readonly<Record<string, JsonObject>>
  if (!("WebhookBody" in schemas!)) return spec
  const webhooks = catalogue(new Map()).map(({ event_type, example, meaning }) =>
    [event_type, webhook(event_type, meaning, example as DocumentJson)] as const
  )
  return {
    ...rest,
    webhooks: Object.fromEntries(webhooks),
    components: { ...more, schemas: schemas!, parameters: { ...others, ...parameters } },
  }
}
