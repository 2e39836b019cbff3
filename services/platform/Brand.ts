/**
 * The installation's name, colour and logo, as the console, the pages for people and mails show them. A configured colour
 * is darkened for light pages and lightened for dark ones until text in it, and text on it, has a contrast of 4.5 to 1
 * (WCAG 2.2, 1.4.3).
 */
import { Context } from "effect"

export interface BrandLogo {
  readonly type: "image/svg+xml" | "image/png"
  readonly bytes: Uint8Array
}

/** `#rrggbb`: the colour of links and of the main button, on light and on dark pages. */
export interface BrandShades {
  readonly light: string
  readonly dark: string
}

export interface BrandShape {
  readonly name: string
  /** Null: the program's own blue. */
  readonly shades: BrandShades | null
  readonly logo: BrandLogo | null
}

export const defaultName = "Bailiwick"

/** The colours of a program without a configured one. */
export const defaultShades: BrandShades = { light: "#0550ae", dark: "#79b8ff" }

type Channels = readonly [red: number, green: number, blue: number]

const channelsOf = (color: string): Channels =>
  [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16)) as unknown as Channels

const hex = (channels: Channels) => `#${channels.map((one) => Math.round(one).toString(16).padStart(2, "0")).join("")}`

const luminance = (color: string): number => {
  const [red, green, blue] = channelsOf(color).map((channel) => {
    const share = channel / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as unknown as Channels
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** The contrast of two colours, from 1 to 21. */
export const contrast = (one: string, other: string): number => {
  const [less, more] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (more! + 0.05) / (less! + 0.05)
}

/** The colours behind a link and on a button, on light and on dark pages (console/Style.css). */
const beside = {
  light: ["#ffffff", "#f4f5f7", "#fff1d3", "#ffe5e5", "#dcf5e3"],
  dark: ["#14171a", "#1d2126", "#33270c", "#3a1618", "#12301c", "#0b1a2b"],
} as const

const leastContrast = 4.5

const readable = (color: string, towards: Channels, others: ReadonlyArray<string>): string => {
  const channels = channelsOf(color)
  const mixed = (share: number) =>
    hex(channels.map((one, i) => one + (towards[i]! - one) * share) as unknown as Channels)
  const steps = Array.from({ length: 101 }, (_, i) => mixed(i / 100))
  return steps.find((one) => others.every((other) => contrast(one, other) >= leastContrast)) ?? steps.at(-1)!
}

/** The nearest readable shades of a colour (`#rrggbb`). */
export const shadesOf = (color: string): BrandShades => ({
  light: readable(color, [0, 0, 0], beside.light),
  dark: readable(color, [255, 255, 255], beside.dark),
})

/** Whether the installation shows a name or a logo of its own. */
export const isBranded = ({ logo, name }: BrandShape): boolean => logo !== null || name !== defaultName

export const defaultBrand: BrandShape = { name: defaultName, shades: null, logo: null }

export class Brand
  extends Context.Reference<BrandShape>("bailiwick/services/platform/Brand", { defaultValue: () => defaultBrand }) {}
