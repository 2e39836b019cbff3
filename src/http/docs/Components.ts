/**
 * Moves what several operations share into the document's `components`: answers, headers and parameters.
 *
 * An operation names its own answers. What any operation may answer (a body that is too large, a rate limit, a
 * database that is away) is its `default` answer, the same for all, so that neither the document nor a generated
 * client repeats a dozen answers for every operation.
 */
import { at, type DocumentJson, isObject, type JsonObject } from "./DocumentJson.ts"
import { commonHeaders, headersOf, retryAfter } from "./Headers.ts"
import { namesIn, type ProblemSchemas } from "./ProblemSchemas.ts"

/**
 * The problems that any operation may answer with; the HTTP edge makes them before or after its handler. Its `security`
 * says which of the two refusals of a credential an operation has.
 */
export const commonProblems: ReadonlyArray<string> = [
  "InvalidCredentials",
  "InvalidToken",
  "MalformedRequest",
  "CsrfRejected",
  "ConsoleReadOnly",
  "AuditorReadsOnly",
  "NotAcceptable",
  "RequestTimeout",
  "BodyTooLarge",
  "UnsupportedMediaType",
  "MisdirectedRequest",
  "RateLimited",
  "HeadersTooLarge",
  "Internal",
  "DependencyUnavailable",
]

/** Codes that say little about an operation: an answer's name leaves them out where it has others. */
const unnamed = new Set([
  "csrf_rejected",
  "console_read_only",
  "auditor_reads_only",
  "malformed_request",
  "dependency_unavailable",
  "idempotency_key_reused",
  "idempotency_in_progress",
])

const reference = (section: string, name: string): JsonObject => ({ "$ref": `#/components/${section}/${name}` })

const problemType = "application/problem+json"

const problemsIn = (response: DocumentJson): ReadonlyArray<string> =>
  namesIn(at(response, "content", problemType, "schema"))

const isCommon = (response: DocumentJson): boolean => {
  const names = problemsIn(response)
  return names.length > 0 && Object.keys(at(response, "content") as JsonObject).length === 1 &&
    names.every((name) => commonProblems.includes(name))
}

/** The names of parts by their text; two parts with one name are told apart by a number. */
class Named {
  readonly #names = new Map<string, string>()
  readonly #parts = new Map<string, DocumentJson>()

  add(wanted: string, part: DocumentJson): string {
    const text = JSON.stringify(part)
    const known = this.#names.get(text)
    if (known !== undefined) return known
    let name = wanted
    for (let number = 2; this.#parts.has(name); number++) name = `${wanted}${number}`
    this.#names.set(text, name)
    this.#parts.set(name, part)
    return name
  }

  get all(): JsonObject {
    return Object.fromEntries([...this.#parts].sort(([a], [b]) => a < b ? -1 : 1))
  }
}

const pascal = (code: string) => code.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** The codes of an answer: those that concern the operation alone, if it has any, otherwise all. */
const ownCodes = (
  response: DocumentJson,
  problems: ProblemSchemas,
): ReadonlyArray<readonly [code: string, title: string]> => {
  const all = [...problems.titles(problemsIn(response))]
  const own = all.filter(([code]) => !unnamed.has(code))
  return own.length > 0 ? own : all
}

/** Names that a hundred operations refer to are short. */
const short: Readonly<Record<string, string>> = { HTTPValidationError: "Invalid" }

/** `NotFound`, `InvalidStateOrVersionConflict`, `RoleRequiredOrOthers`, or the schema of a success. */
const answerName = (response: DocumentJson, problems: ProblemSchemas): string => {
  const content = at(response, "content")
  if (!isObject(content)) return "NoContent"
  const [first, second, ...more] = ownCodes(response, problems).map(([code]) => pascal(code))
  if (first === undefined) {
    const name = Object.values(content).flatMap((media) => namesIn(at(media, "schema")))[0] ?? "Success"
    return short[name] ?? name
  }
  return [first, more.length > 0 ? "Others" : second].filter((name) => name !== undefined).join("Or")
}

const headersIn = (headers: JsonObject): JsonObject => Object.keys(headers).length > 0 ? { headers } : {}

/** The answer with the schema of its problems, and a description of those that are the operation's. */
const narrowed = (response: DocumentJson, problems: ProblemSchemas): DocumentJson => {
  // In one order, so that answers with the same problems are one.
  const names = problemsIn(response).toSorted()
  if (names.length === 0 || !names.every(problems.has)) return response
  const { headers, ...rest } = response as JsonObject
  return {
    ...rest,
    description: ownCodes(response, problems).map(([, title]) => title).toSorted().join("; "),
    ...headersIn({ ...headers as JsonObject, ...(problems.pass(names) ? retryAfter : {}) }),
    content: { ...at(response, "content") as JsonObject, [problemType]: { schema: problems.anyOf(names) } },
  }
}

const commonAnswer = (problems: ProblemSchemas): JsonObject => ({
  description: "What any operation may answer; `code` says which problem it is.",
  headers: commonHeaders,
  content: { [problemType]: { schema: problems.anyOf(commonProblems.filter(problems.has)) } },
})

const operationsOf = (paths: JsonObject): ReadonlyArray<JsonObject> =>
  Object.values(paths).flatMap((methods) => Object.values(methods as JsonObject).filter(isObject))

/** How often each part of the operations occurs, by its text. */
const countsOf = (paths: JsonObject, parts: (operation: JsonObject) => ReadonlyArray<DocumentJson>) => {
  const counts = new Map<string, number>()
  for (const part of operationsOf(paths).flatMap(parts)) {
    const text = JSON.stringify(part)
    counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  return (part: DocumentJson) => counts.get(JSON.stringify(part)) ?? 0
}

const listOf = (value: DocumentJson | undefined): ReadonlyArray<DocumentJson> => Array.isArray(value) ? value : []

const camel = (name: string) => name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** The document with `components/responses`, `components/headers` and `components/parameters`. */
export const withComponents = (spec: JsonObject, problems: ProblemSchemas): JsonObject => {
  const paths = spec["paths"] as JsonObject
  const responses = new Named()
  const parameters = new Named()
  const common = reference("responses", responses.add("Any", commonAnswer(problems)))
  const timesAnswered = countsOf(paths, (operation) => Object.values(operation["responses"] as JsonObject))
  const timesTaken = countsOf(paths, (operation) => listOf(operation["parameters"]))

  const answer = (status: string, response: DocumentJson): DocumentJson =>
    status.startsWith("2") && timesAnswered(response) === 1
      ? response
      : reference("responses", responses.add(answerName(response, problems), narrowed(response, problems)))

  /** An operation without a refusal of its own still says that it may refuse, as linters ask. */
  const ownAnswers = (all: JsonObject): JsonObject => {
    const own = Object.entries(all).filter(([, response]) => !isCommon(response))
    return {
      ...Object.fromEntries(own.map(([status, response]) => [status, answer(status, response)])),
      ...(own.some(([status]) => status.startsWith("4")) ? {} : { "4XX": common }),
    }
  }

  const shared = (operation: JsonObject): JsonObject => ({
    ...operation,
    parameters: listOf(operation["parameters"]).map((parameter) =>
      timesTaken(parameter) === 1
        ? parameter
        : reference("parameters", parameters.add(camel(String(at(parameter, "name"))), parameter))
    ),
    responses: { ...ownAnswers(operation["responses"] as JsonObject), default: common },
  })
  const moved = Object.fromEntries(
    Object.entries(paths).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods as JsonObject).map(([method, operation]) => [method, shared(operation as JsonObject)]),
      ),
    ]),
  )
  return {
    ...spec,
    paths: moved,
    components: {
      ...spec["components"] as JsonObject,
      parameters: parameters.all,
      headers: headersOf,
      responses: responses.all,
    },
  }
}
