/** The table of pydantic's messages for the checks and types of Effect's Schema. */
import type { SchemaAST } from "effect"
import {
  atLeast,
  atMost,
  boolType,
  type Complaint,
  complaintIn,
  intFromFloat,
  intType,
  listTooLong,
  listTooShort,
  mapTooLong,
  notFinite,
  notOneOf,
  patternMismatch,
  stringTooLong,
  stringTooShort,
  valueError,
} from "./Fault.ts"
import { uuidParsing, uuidType } from "./Uuid.ts"

type Rule = (payload: Readonly<Record<string, unknown>>, input: unknown) => Complaint

const codePoints = (input: unknown) => typeof input === "string" ? [...input].length : 0
const isShort = (input: unknown, min: number) => codePoints(input) < min
const lengthOf = (input: unknown) => Array.isArray(input) ? input.length : codePoints(input)
const number = (value: unknown) => Number(value)

const tooShort = (input: unknown, min: number) =>
  Array.isArray(input) ? listTooShort(min, input.length) : stringTooShort(min)
const tooLong = (input: unknown, max: number) =>
  Array.isArray(input) ? listTooLong(max, input.length) : stringTooLong(max)

const rules: Readonly<Record<string, Rule>> = {
  isMinCodePoints: (p) => stringTooShort(number(p["minCodePoints"])),
  isMaxCodePoints: (p) => stringTooLong(number(p["maxCodePoints"])),
  isBetweenCodePoints: (p, input) =>
    isShort(input, number(p["minimum"])) ? stringTooShort(number(p["minimum"])) : stringTooLong(number(p["maximum"])),
  isMinLength: (p, input) => tooShort(input, number(p["minLength"])),
  isMaxLength: (p, input) => tooLong(input, number(p["maxLength"])),
  isBetweenLength: (p, input) =>
    lengthOf(input) < number(p["minimum"])
      ? tooShort(input, number(p["minimum"]))
      : tooLong(input, number(p["maximum"])),
  isMaxProperties: (p, input) => mapTooLong(number(p["maxProperties"]), Object.keys(Object(input)).length),
  isPattern: (p) => patternMismatch(String(p["source"]).replaceAll("\\/", "/")),
  isUUID: (_, input) => uuidParsing(String(input)),
  isGUID: (_, input) => uuidParsing(String(input)),
  isInt: () => intFromFloat,
  isFinite: () => notFinite,
  isGreaterThanOrEqualTo: (p) => atLeast(number(p["minimum"])),
  isLessThanOrEqualTo: (p) => atMost(number(p["maximum"])),
  isBetween: (p, input) =>
    number(input) < number(p["minimum"]) ? atLeast(number(p["minimum"])) : atMost(number(p["maximum"])),
}

const representation = (annotations: SchemaAST.AST["annotations"]) =>
  annotations?.["representation"] as { readonly id?: string; readonly payload?: unknown } | undefined

const nameOf = (check: SchemaAST.Check<unknown>) => representation(check.annotations)?.id?.replace("effect/schema/", "")

const checksOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.Check<unknown>> =>
  (ast.checks ?? []).flatMap((check) => check._tag === "FilterGroup" ? [check, ...check.checks] : [check])

const most = new WeakMap<SchemaAST.AST, number>()

/** The most items that a list or map may hold by its own checks. */
const mostOf = (ast: SchemaAST.AST): number => {
  const known = most.get(ast)
  if (known !== undefined) return known
  const limits = checksOf(ast).flatMap((check) => {
    const name = nameOf(check)
    const payload = Object(representation(check.annotations)?.payload)
    return name === "isMaxLength"
      ? [number(payload["maxLength"])]
      : name === "isMaxProperties"
      ? [number(payload["maxProperties"])]
      : []
  })
  const max = Math.min(...limits)
  most.set(ast, max)
  return max
}

/** The fault of a list or map that is too long. It is the only one: pydantic does not check the items then. */
export const tooManyIn = (ast: SchemaAST.AST, input: unknown): Complaint | undefined => {
  if (ast._tag === "Union") return ast.types.map((type) => tooManyIn(type, input)).find((found) => found !== undefined)
  if (typeof input !== "object" || input === null) return undefined
  if (Array.isArray(input)) {
    return ast._tag === "Arrays" && input.length > mostOf(ast) ? listTooLong(mostOf(ast), input.length) : undefined
  }
  if (ast._tag !== "Objects" || mostOf(ast) === Infinity) return undefined
  const { length } = Object.keys(input)
  return length > mostOf(ast) ? mapTooLong(mostOf(ast), length) : undefined
}

/** The message of a failed check. */
export const ofCheck = (filter: SchemaAST.Filter<unknown>, input: unknown): Complaint | undefined => {
  const own = complaintIn(filter.annotations, input)
  if (own) return own
  const payload = representation(filter.annotations)?.payload
  const rule = rules[nameOf(filter) ?? ""]
  return rule?.((payload ?? {}) as Readonly<Record<string, unknown>>, input)
}

const literals = (ast: SchemaAST.AST): ReadonlyArray<unknown> | undefined => {
  if (ast._tag === "Literal") return [ast.literal]
  if (ast._tag === "Enum") return ast.enums.map(([, value]) => value)
  if (ast._tag !== "Union") return undefined
  const all = ast.types.filter((type) => type._tag !== "Null").map(literals)
  return all.length > 0 && all.every((some) => some !== undefined) ? all.flat() : undefined
}

/** The message of a schema's type for a value of another type. */
export const ofType = (ast: SchemaAST.AST, input: unknown): Complaint => {
  const own = complaintIn(ast.annotations, input) ??
    checksOf(ast).map((check) => complaintIn(check.annotations, input)).find((found) => found !== undefined)
  if (own && ast._tag !== "String" && ast._tag !== "Number") return own
  const known = literals(ast)
  if (known) return notOneOf(known)
  const names = checksOf(ast).map(nameOf)
  switch (ast._tag) {
    case "String":
      return names.includes("isUUID") || names.includes("isGUID")
        ? uuidType
        : { type: "string_type", msg: "Input should be a valid string" }
    case "Number":
      return names.includes("isInt") ? intType : { type: "float_type", msg: "Input should be a valid number" }
    case "Boolean":
      return boolType
    case "Arrays":
      return { type: "list_type", msg: "Input should be a valid list" }
    case "Objects":
      return ast.propertySignatures.length > 0
        ? {
          type: "model_attributes_type",
          msg: "Input should be a valid dictionary or object to extract fields from",
        }
        : { type: "dict_type", msg: "Input should be a valid dictionary" }
    case "Union": {
      const member = ast.types.find((type) => type._tag !== "Null" && type._tag !== "Undefined")
      return member ? ofType(member, input) : valueError("the value is not allowed")
    }
    default:
      return valueError("the value is not allowed")
  }
}
