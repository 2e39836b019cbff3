/**
 * Translates Effect's tree of issues into pydantic's flat list of faults.
 *
 * Decode with `{ errors: "all", reportInput: true }`, otherwise faults and inputs are missing. As in pydantic, a scalar
 * has one fault, fields come in the order of the schema, and unknown fields come last. Where a schema is secret
 * (`secretInput`, Redacted), neither its value nor any object that holds it is repeated.
 */
import { type Schema, type SchemaAST, SchemaIssue } from "effect"
import { maxUnknown, shortInput, shortName } from "./Bounds.ts"
import { ofCheck, ofType, tooManyIn } from "./Complaints.ts"
import { type Complaint, complaintIn, type Fault, isSecret, missing, valueError } from "./Fault.ts"

type Loc = ReadonlyArray<string | number>

interface Location {
  readonly loc: Loc
  /** The path in the input; `loc` also names the members of tagged unions. */
  readonly path: Loc
  /** Whether the refused value may be repeated. */
  readonly echo: boolean
  /** The whole input, since a refused value is repeated as it was sent, not as it was read. */
  readonly sent: unknown
}

const unknownField: Complaint = { type: "extra_forbidden", msg: "Extra inputs are not permitted" }

const secrets = new WeakMap<SchemaAST.AST, boolean>()

/** Whether a schema, or any part of it, is secret. */
const holdsSecret = (ast: SchemaAST.AST): boolean => {
  const known = secrets.get(ast)
  if (known !== undefined) return known
  secrets.set(ast, false)
  const marked = isSecret(ast.annotations) || (ast.checks ?? []).some((check) => isSecret(check.annotations)) ||
    ast._tag === "Declaration" && JSON.stringify(ast.annotations?.["representation"] ?? "").includes("Redacted")
  const parts = ast._tag === "Objects"
    ? [...ast.propertySignatures.map((property) => property.type), ...ast.indexSignatures.map((index) => index.type)]
    : ast._tag === "Arrays"
    ? [...ast.elements, ...ast.rest]
    : ast._tag === "Union"
    ? ast.types
    : []
  const result = marked || parts.some(holdsSecret)
  secrets.set(ast, result)
  return result
}

/** The value at a path of the input. */
const sentAt = (sent: unknown, path: Loc): unknown =>
  path.reduce<unknown>(
    (value, key) => typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined,
    sent,
  )

const echoed = (at: Location, complaint: Complaint): unknown => {
  const { path } = at
  if (complaint !== missing) return sentAt(at.sent, path) ?? null
  // A missing field shows the object that lacks it; parameters are separate values.
  return at.loc[0] === "body" && path.length > 0 ? sentAt(at.sent, path.slice(0, -1)) ?? null : null
}

const fault = (at: Location, complaint: Complaint): Fault => {
  const input = at.echo ? shortInput(echoed(at, complaint)) : undefined
  return {
    type: complaint.type,
    loc: at.loc,
    msg: complaint.msg,
    ...(input === undefined ? {} : { input }),
    ...(complaint.ctx ? { ctx: complaint.ctx } : {}),
  }
}

const inputOf = (issue: SchemaIssue.Issue): unknown => SchemaIssue.hasInput(issue) ? issue.input : undefined

const last = (issue: SchemaIssue.Issue): boolean =>
  issue._tag === "Pointer" ? last(issue.issue) : issue._tag === "UnexpectedKey"

const isScalar = (ast: SchemaAST.AST) => ast._tag !== "Objects" && ast._tag !== "Arrays"

/** One fault with the number of unknown members that are not reported one by one. */
const moreUnknown = (issue: SchemaIssue.Composite, at: Location): ReadonlyArray<Fault> => {
  const { ast } = issue
  if (ast._tag !== "Objects") return []
  const names = new Set(ast.propertySignatures.map((property) => property.name))
  const more = Object.keys(Object(sentAt(at.sent, at.path))).filter((name) => !names.has(name)).length -
    maxUnknown
  const msg = `${unknownField.msg}: ${more} more`
  return more > 0 ? [fault({ ...at, echo: false }, { ...unknownField, msg, ctx: { more } })] : []
}

/** The type of an object's member; undefined where the schema has none of this name. */
const memberOf = (ast: SchemaAST.AST, name: PropertyKey | undefined): SchemaAST.AST | undefined =>
  ast._tag === "Objects" ? ast.propertySignatures.find((property) => property.name === name)?.type : undefined

/** `read` is the schema as it is read, where the issue names the schema of what is sent: either may be marked secret. */
const ofComposite = (issue: SchemaIssue.Composite, at: Location, read = issue.ast): ReadonlyArray<Fault> => {
  const secret = holdsSecret(issue.ast) || holdsSecret(read)
  const inner = { ...at, echo: at.echo && !(isScalar(issue.ast) && secret) }
  const known = issue.issues.filter((child) => !last(child))
  const unknown = issue.issues.filter(last)
  const ordered = [...known, ...unknown.slice(0, maxUnknown)]
  const wanted = isScalar(issue.ast) || known[0]?._tag === "Filter" ? ordered.slice(0, 1) : ordered
  const faults = wanted.flatMap((child) => {
    // A rule of the whole, and a missing member, repeat the whole.
    const within = child._tag === "Pointer" && child.issue._tag !== "MissingKey"
    const types = within ? [issue.ast, read].flatMap((ast) => memberOf(ast, child.path[0]) ?? []) : []
    const echo = inner.echo && !(within ? types.some(holdsSecret) : secret)
    return walk(child, { ...inner, echo })
  })
  return unknown.length > maxUnknown ? [...faults, ...moreUnknown(issue, at)] : faults
}

const ofUnion = (issue: SchemaIssue.AnyOf, at: Location): ReadonlyArray<Fault> => {
  const quiet = { ...at, echo: at.echo && !holdsSecret(issue.ast) }
  const tag = tagOf(issue, quiet.echo)
  if (tag !== undefined && typeof tag !== "string") return [fault(quiet, tag)]
  const telling = issue.issues.filter((inner) => inner._tag !== "InvalidType" || inner.ast._tag !== "Null")
  const [first] = telling
  if (!first || !telling.every((inner) => inner._tag === "Composite" || inner._tag === "Encoding")) {
    return [fault(quiet, ofType(issue.ast, inputOf(issue)))]
  }
  // Members of an object are judged one by one: those that are not secret are repeated.
  const { echo } = first._tag === "Composite" && first.ast._tag === "Objects" ? at : quiet
  return walk(first, { ...at, echo, loc: tag === undefined ? at.loc : [...at.loc, tag] })
}

/** The tag of a tagged union's input, or the fault of the tag. */
const tagOf = (issue: SchemaIssue.AnyOf, echo: boolean): string | Complaint | undefined => {
  const input = inputOf(issue)
  if (typeof input !== "object" || input === null || Array.isArray(input)) return undefined
  const members = issue.ast.types.flatMap((type) => type._tag === "Objects" ? [type] : [])
  const tagsOf = (name: PropertyKey, member: SchemaAST.Objects) =>
    member.propertySignatures.flatMap((property) =>
      property.name === name && property.type._tag === "Literal" ? [property.type.literal] : []
    )
  const name = members[0]?.propertySignatures.map((property) => property.name)
    .find((candidate) => members.every((member) => tagsOf(candidate, member).length === 1))
  if (typeof name !== "string") return undefined
  const tags = members.flatMap((member) => tagsOf(name, member))
  const tag: unknown = Reflect.get(input, name)
  if (tag === undefined) {
    return {
      type: "union_tag_not_found",
      msg: `Unable to extract tag using discriminator '${name}'`,
      ctx: { discriminator: `'${name}'` },
    }
  }
  if (tags.some((known) => known === tag)) return String(tag)
  const shown = shortName(String(tag))
  const expected = tags.map((known) => `'${String(known)}'`).join(", ")
  return {
    type: "union_tag_invalid",
    msg: `Input tag ${
      echo ? `'${shown}' ` : ""
    }found using '${name}' does not match any of the expected tags: ${expected}`,
    ctx: { discriminator: `'${name}'`, ...(echo ? { tag: shown } : {}), expected_tags: expected },
  }
}

const walk = (issue: SchemaIssue.Issue, at: Location): ReadonlyArray<Fault> => {
  const overlong = "ast" in issue ? tooManyIn(issue.ast, sentAt(at.sent, at.path)) : undefined
  if (overlong && "ast" in issue) return [fault({ ...at, echo: at.echo && !holdsSecret(issue.ast) }, overlong)]
  switch (issue._tag) {
    case "Pointer":
      return walk(issue.issue, descend(at, issue.path.map(segment)))
    case "Composite":
      return ofComposite(issue, at)
    case "AnyOf":
      return ofUnion(issue, at)
    case "Encoding": {
      const echo = at.echo && !holdsSecret(issue.ast)
      const own = complaintIn(issue.ast.annotations, inputOf(issue))
      if (own) return [fault({ ...at, echo }, own)]
      // Members of an object are judged one by one: those that are not secret are repeated.
      return issue.issue._tag === "Composite" && issue.ast._tag === "Objects" && issue.issue.ast._tag === "Objects"
        ? ofComposite(issue.issue, at, issue.ast)
        : walk(issue.issue, { ...at, echo })
    }
    case "Filter": {
      const own = ofCheck(issue.filter, inputOf(issue))
      if (own) return [fault(at, own)]
      if (issue.issue._tag === "InvalidValue") return [fault(at, sentence(issue))]
      return walk(issue.issue, at)
    }
    case "MissingKey":
      return [fault(at, missing)]
    case "UnexpectedKey":
      return [fault(at, unknownField)]
    case "InvalidType":
      return [fault({ ...at, echo: at.echo && !holdsSecret(issue.ast) }, ofType(issue.ast, inputOf(issue)))]
    case "InvalidValue":
      return [fault(at, complaintIn(issue.annotations, inputOf(issue)) ?? sentence(issue))]
    default:
      return [fault(at, valueError("the value is not allowed"))]
  }
}

const descend = (at: Location, keys: Loc): Location => ({
  ...at,
  loc: [...at.loc, ...keys.map((key) => typeof key === "string" ? shortName(key) : key)],
  path: [...at.path, ...keys],
})

const segment = (key: PropertyKey): string | number => typeof key === "symbol" ? String(key) : key

/** The message of a check that is not in the table: its own, or what it expects. */
const sentence = (issue: SchemaIssue.Filter | SchemaIssue.InvalidValue): Complaint => {
  const annotations = issue._tag === "Filter"
    ? { ...issue.filter.annotations, ...(issue.issue._tag === "InvalidValue" ? issue.issue.annotations : {}) }
    : issue.annotations
  const said = annotations?.message ?? (annotations?.expected ? `expected ${annotations.expected}` : undefined)
  return valueError(typeof said === "string" ? said : "the value is not allowed")
}

/**
 * The faults of one failed decoding of `sent`. `section` is the first part of their location (`body`); with `echo`
 * false no value is repeated, as for headers and for the bodies of credential actions.
 */
export const faultsOf = (
  error: Schema.SchemaError,
  section: string,
  sent: unknown,
  echo: boolean,
): ReadonlyArray<Fault> => walk(error.issue, { loc: [section], path: [], echo, sent })
