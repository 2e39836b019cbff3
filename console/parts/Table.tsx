/** A table, whose rows are cards on a phone. The roles are said, since `display: block` takes them away. */
import type { ComponentChildren, JSX } from "preact"

export interface Column<Row> {
  readonly head: string
  /** Numbers stand below each other by their last digit. */
  readonly number?: boolean
  readonly cell: (row: Row) => ComponentChildren
}

export const Table = <Row,>({ caption, columns, empty, keyOf, rows }: {
  /** The table's name, for screen readers. */
  readonly caption: string
  /** The first column names the row. */
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  readonly keyOf: (row: Row) => string
  /** Shown where there is no row: that there is none, and what to do. */
  readonly empty: ComponentChildren
}): JSX.Element =>
  rows.length === 0 ? <div class="empty">{empty}</div> : (
    <table role="table">
      <caption class="hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(({ head, number }) => (
            <th key={head} role="columnheader" scope="col" class={number ? "number" : undefined}>{head}</th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row">
            {columns.map(({ cell, head, number }, n) =>
              n === 0 ? <th key={head} role="rowheader" scope="row">{cell(row)}</th> : (
                // On a phone the label and the cell's content stand side by side.
                <td key={head} role="cell" data-label={head} class={number ? "number" : undefined}>
                  <div>{cell(row)}</div>
                </td>
              )
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
