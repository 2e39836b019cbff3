/** A QR code as an SVG image: black on white in the dark, too, since cameras read no other. */
import type { JSX } from "preact"
import { encode } from "uqr"

/** A subpath for each run of dark modules in a row. */
const pathOf = (rows: ReadonlyArray<ReadonlyArray<boolean>>): string =>
  rows.flatMap((row, y) => {
    const runs: Array<string> = []
    for (let x = 0; x < row.length; x += 1) {
      const from = x
      while (row[x] === true) x += 1
      if (x > from) runs.push(`M${from} ${y}h${x - from}v1h${from - x}z`)
    }
    return runs
  }).join("")

export const QrCode = ({ label, text }: { readonly text: string; readonly label: string }): JSX.Element => {
  const { data, size } = encode(text, { border: 4, ecc: "M" })
  return (
    <svg class="qr" role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={pathOf(data)} fill="#000" />
    </svg>
  )
}
