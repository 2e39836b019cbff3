/**
 * The AsyncAPI 3.0 document of the broker's messages, made of the contract's table (schemas/bus/BusChannels.ts). It
 * describes the program: it sends what others may follow, and receives what publishers say.
 *
 * Schemas are of JSON Schema draft 07, AsyncAPI's own. The payload of a signed message is the token's text; its claims
 * are described by `contentSchema`, which JSON Schema names for this and which later drafts define.
 */
import { JsonSchema, Schema } from "effect"
import { busChannels, type ChannelSpec } from "../../../schemas/bus/BusChannels.ts"
import { BusStreams } from "../../../schemas/bus/BusStreams.ts"
import { version } from "./Document.ts"
import type { DocumentJson, JsonObject } from "./DocumentJson.ts"

const schemasRef = "#/components/schemas/"

const description = `Messages of this installation on its NATS JetStream streams. How to connect, read with a durable
consumer and acknowledge stands in docs/subscribing.md; the HTTP API in /v1/openapi.json. A message may come more than
once. Ids in subjects that are not made of \`A-Za-z0-9_-\` are replaced by \`~\` and a hash: read ids in payloads.`
  .replaceAll("\n", " ")

/** Drafts 07 of schemas, whose definitions are collected under the document's components. */
const schemaWriter = () => {
  const definitions: Record<string, DocumentJson> = {}
  const write = (schema: Schema.Top): DocumentJson => {
    const made = JsonSchema.toDocumentDraft07(Schema.toJsonSchemaDocument(schema))
    const text = JSON.stringify({ definitions: made.definitions, schema: made.schema })
    const plain = JSON.parse(text.replaceAll('"#/definitions/', `"${schemasRef}`)) as {
      readonly definitions: JsonObject
      readonly schema: DocumentJson
    }
    Object.assign(definitions, plain.definitions)
    return plain.schema
  }
  return { definitions, write }
}

/** RFC 7515, 7.1: a compact serialisation. */
const token = { type: "string", pattern: "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$" }

/** Streams whose messages do not come from the outbox. */
const direct: ReadonlySet<string> = new Set(["RESULTS", "DELIVERIES", "DECISION_LOG"])

const headersOf = ({ by, orderedBy, signed, stream }: ChannelSpec): DocumentJson => ({
  type: "object",
  properties: {
    ...(by === "publishers" || direct.has(stream) ? {} : {
      "Bailiwick-Id": {
        type: "string",
        format: "uuid",
        description: "The same for every repeat of a message: drop repeats by it",
      },
      "Nats-Msg-Id": { type: "string", description: "The same id; a copy that is published again has none" },
    }),
    ...(signed ? { "Content-Type": { const: "application/secevent+jwt" } } : {}),
    ...(orderedBy === undefined ? {} : {
      "Bailiwick-Seq": { type: "string", pattern: "^\\d+$", description: `Grows with each message of a ${orderedBy}` },
    }),
    ...(by === "publishers" ? {} : {
      traceparent: { type: "string", description: "W3C Trace Context of the request that decided" },
    }),
  },
})

const messageOf = (channel: ChannelSpec, name: string, title: string, own: DocumentJson) => ({
  name,
  title,
  contentType: channel.signed ? "application/secevent+jwt" : "application/json",
  headers: headersOf(channel),
  payload: channel.signed ? { ...token, contentMediaType: "application/secevent+jwt", contentSchema: own } : own,
})

const words: Readonly<Record<ChannelSpec["by"], string>> = {
  program: "",
  publishers: "",
  internal: " Between processes of the program: no other user may read or write it.",
}

const day = 24 * 60 * 60_000

const channelOf = (name: string, channel: ChannelSpec, names: ReadonlyArray<string>): JsonObject => ({
  address: channel.address,
  title: channel.title,
  description: `${channel.description}${words[channel.by]}`,
  servers: [{ $ref: "#/servers/bus" }],
  ...(Object.keys(channel.parameters).length === 0 ? {} : {
    parameters: Object.fromEntries(
      Object.entries(channel.parameters).map(([name, description]) => [name, { description }]),
    ),
  }),
  messages: Object.fromEntries(names.map((one) => [one, { $ref: `#/components/messages/${name}.${one}` }])),
  "x-stream": {
    name: channel.stream,
    kept_days: BusStreams[channel.stream].maxAgeMillis / day,
    ...(channel.orderedBy === undefined ? {} : { in_order_by: channel.orderedBy }),
  },
})

const operationsOf = (): JsonObject =>
  Object.fromEntries(
    Object.entries(busChannels).flatMap(([name, { by, title }]) => {
      const actions = by === "internal" ? ["send", "receive"] : [by === "program" ? "send" : "receive"]
      return actions.map((action) => [
        `${action}${name[0]!.toUpperCase()}${name.slice(1)}`,
        { action, channel: { $ref: `#/channels/${name}` }, summary: title },
      ])
    }),
  )

/** The document, as plain JSON. */
export const asyncApiDocument = (): JsonObject => {
  const { definitions, write } = schemaWriter()
  const messages: Record<string, DocumentJson> = {}
  const channels = Object.entries(busChannels).map(([name, channel]) => {
    const own = Object.entries(channel.messages)
    for (const [one, spec] of own) messages[`${name}.${one}`] = messageOf(channel, one, spec.title, write(spec.schema))
    return [name, channelOf(name, channel, own.map(([one]) => one))] as const
  })
  return {
    asyncapi: "3.0.0",
    info: { title: "Bailiwick on the bus", version, description, license: { name: "MIT" } },
    defaultContentType: "application/json",
    servers: {
      bus: {
        host: "{host}",
        protocol: "nats",
        description: "The broker of NATS_URL",
        variables: { host: { default: "127.0.0.1:4222", description: "Host and port, as the operator tells" } },
        security: [{ $ref: "#/components/securitySchemes/user" }],
      },
    },
    channels: Object.fromEntries(channels),
    operations: operationsOf(),
    components: {
      schemas: Object.fromEntries(Object.entries(definitions).sort(([a], [b]) => a < b ? -1 : 1)),
      messages,
      securitySchemes: {
        user: { type: "userPassword", description: "One user for each stream: `cli nats permissions` prints them" },
      },
    },
  }
}
