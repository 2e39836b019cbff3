/**
 * Bounds of a body that are checked before any item of it is decoded. With `errors: "all"` Effect's decoder makes an
 * issue for every wrong item and every unknown member, and checks a list's length last: 250 KB of wrong items took 270
 * ms of the main thread. So an overlong list or map is the only fault of its body, and of other bodies only as much is
 * decoded as the reported faults need.
 */
import { Exit, Schema, type SchemaAST } from "effect"
import { tooManyIn } from "./Complaints.ts"

/** The most faults in one answer; the bodies of the contract have fewer fields. */
export const maxFaults = 100

/** The most unknown members of one object that are reported one by one. */
export const maxUnknown = 20

export interface Bounded {
  /** Whether a list or map holds more items than its schema admits. */
  readonly overflows: (value: unknown) => boolean
  /**
   * The value without the parts that no reported fault needs. A symbol that no schema takes stands for an overlong list
   * or map; other lists and maps end with the hundredth wrong item; of unknown members one more is left than is
   * reported.
   */
  readonly cut: (value: unknown) => unknown
}

/**
 * Stands for an overlong list or map: no body holds this symbol, and no schema of a list, a map or a scalar takes it.
 */
const overlong = Symbol("overlong")

type Members = Readonly<Record<string, unknown>>

const scalar: Bounded = { overflows: () => false, cut: (value) => value }

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Counts the values up to the hundredth wrong one. */
const untilWrong = (ast: SchemaAST.AST, options: SchemaAST.ParseOptions) => {
  const decode = Schema.decodeUnknownExit(Schema.make<Schema.Codec<unknown>>(ast), options)
  return (values: ReadonlyArray<unknown>): number => {
    if (values.length <= maxFaults) return values.length
    let wrong = 0
    const last = values.findIndex((value) => Exit.isFailure(decode(value)) && ++wrong === maxFaults)
    return last < 0 ? values.length : last + 1
  }
}

const ofArrays = (ast: SchemaAST.Arrays, options: SchemaAST.ParseOptions): Bounded => {
  const [rest] = ast.rest
  if (rest === undefined || ast.elements.length > 0) return scalar
  const item = boundedOf(rest, options)
  const count = untilWrong(rest, options)
  return {
    overflows: (value) =>
      Array.isArray(value) &&
      (tooManyIn(ast, value) !== undefined || item !== scalar && value.some(item.overflows)),
    cut: (value) => {
      if (!Array.isArray(value)) return value
      if (tooManyIn(ast, value)) return overlong
      const items = item === scalar ? value : value.map(item.cut)
      return items.slice(0, count(items))
    },
  }
}

const ofObjects = (ast: SchemaAST.Objects, options: SchemaAST.ParseOptions): Bounded => {
  const known = new Map(
    ast.propertySignatures.map((property) => [String(property.name), boundedOf(property.type, options)]),
  )
  const [index] = ast.indexSignatures
  const others = index === undefined ? undefined : boundedOf(index.type, options)
  const count = index === undefined ? undefined : untilWrong(index.type, options)
  return {
    overflows: (value) => {
      if (!isMembers(value)) return false
      if (tooManyIn(ast, value)) return true
      if (others !== undefined && others !== scalar) return Object.values(value).some(others.overflows)
      return [...known].some(([name, inner]) =>
        inner !== scalar && Object.hasOwn(value, name) && inner.overflows(value[name])
      )
    },
    cut: (value) => {
      if (!isMembers(value)) return value
      if (tooManyIn(ast, value)) return overlong
      const entries = Object.entries(value)
      const own = entries.filter(([name]) => known.has(name)).map(([name, one]) => [name, known.get(name)!.cut(one)])
      const foreign = entries.filter(([name]) => !known.has(name))
      const left = others === undefined || count === undefined
        ? foreign.slice(0, maxUnknown + 1)
        : foreign.map(([name, one]) => [name, others.cut(one)] as const)
          .slice(0, count(foreign.map(([, one]) => one)))
      // `Object.fromEntries` treats a member `__proto__` like any other.
      return Object.fromEntries([...own, ...left])
    },
  }
}

/** The index of the member of a tagged union whose literal the value has. */
const meant = (types: ReadonlyArray<SchemaAST.Objects>, value: Members) =>
  types.findIndex((type) =>
    type.propertySignatures.some((property) =>
      property.type._tag === "Literal" && property.type.literal === value[String(property.name)]
    )
  )

const typesOf = (ast: SchemaAST.Union): ReadonlyArray<SchemaAST.AST> =>
  ast.types.flatMap((type) => type._tag === "Union" ? typesOf(type) : [type])

const ofUnion = (ast: SchemaAST.Union, options: SchemaAST.ParseOptions): Bounded => {
  const types = typesOf(ast)
  const lists = types.filter((type) => type._tag === "Arrays")
  const objects = types.filter((type) => type._tag === "Objects")
  if (lists.length + objects.length === 0) return scalar
  const list = lists[0] === undefined ? scalar : boundedOf(lists[0], options)
  const members = objects.map((type) => boundedOf(type, options))
  const of = (value: unknown) =>
    Array.isArray(value) ? list : isMembers(value) ? members[Math.max(0, meant(objects, value))] ?? scalar : scalar
  return { overflows: (value) => of(value).overflows(value), cut: (value) => of(value).cut(value) }
}

const boundedOf = (ast: SchemaAST.AST, options: SchemaAST.ParseOptions): Bounded =>
  ast._tag === "Arrays"
    ? ofArrays(ast, options)
    : ast._tag === "Objects"
    ? ofObjects(ast, options)
    : ast._tag === "Union"
    ? ofUnion(ast, options)
    : scalar

/** The bounds in a schema's decoded form; `options` are those of the decoder. */
export const bounded = (schema: Schema.Constraint, options: SchemaAST.ParseOptions = {}): Bounded =>
  boundedOf(schema.ast, options)

/** The most bytes of a refused value, as JSON, that an answer repeats. */
const maxEcho = 1_024

/** The most characters of a name that an answer repeats. */
const maxName = 100

const encoder = new TextEncoder()

const cutText = (text: string, length: number) => `${text.slice(0, length).replace(/[\ud800-\udbff]$/, "")}…`

/** A member's name or a tag, cut where it is longer than any of ours. */
export const shortName = (name: string): string => name.length > maxName ? cutText(name, maxName) : name

/** Whether a value takes at most `room.left` characters; stops looking at a longer one once the room is used up. */
const fits = (value: unknown, room: { left: number }): boolean => {
  if ((room.left -= typeof value === "string" ? value.length : 1) < 0) return false
  if (Array.isArray(value)) return value.every((item) => fits(item, room))
  if (!isMembers(value)) return true
  for (const name in value) {
    if ((room.left -= name.length) < 0 || !fits(value[name], room)) return false
  }
  return true
}

const bytesOf = (value: unknown) => encoder.encode(JSON.stringify(value) ?? "").length

/** A refused value as an answer may repeat it: a long text is cut, a long list or object left out (`undefined`). */
export const shortInput = (value: unknown): unknown => {
  if (fits(value, { left: maxEcho }) && bytesOf(value) <= maxEcho) return value
  if (typeof value !== "string") return undefined
  let length = Math.min(value.length, 1_000)
  while (bytesOf(cutText(value, length)) > maxEcho) length = length >> 1
  return cutText(value, length)
}

/** The most bytes of all faults in one answer. */
const maxTold = 60_000

/** The first faults, as many as an answer has room for. */
export const toldOf = <F>(faults: ReadonlyArray<F>): ReadonlyArray<F> => {
  let bytes = 0
  const some = faults.slice(0, maxFaults)
  const beyond = some.findIndex((fault) => (bytes += bytesOf(fault) + 1) > maxTold)
  return beyond < 0 ? some : some.slice(0, beyond)
}
