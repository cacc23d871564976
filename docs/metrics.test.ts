// operations.md lists the metrics and log fields that the programs publish, and says what the code says of each.
import { METRICS } from '@bullpen/telemetry'
import { describe, expect, it } from 'vitest'
import { LOG_FIELDS } from '../packages/telemetry/src/log/log-fields.ts'
import { rows, section } from './markdown-tables.ts'

describe('docs/operations.md', () => {
  it('lists every metric with its type, labels and help, and no other', () => {
    const expected = Object.entries(METRICS).map(([name, { type, labels, help }]) => [
      name,
      type,
      labels.join(', ') || 'none',
      help,
    ])
    expect(rows(section('operations.md', 'Metrics'))).toEqual(expected)
  })

  it('lists every log field with its meaning, and no other', () => {
    expect(rows(section('operations.md', 'Logs'))).toEqual(Object.entries(LOG_FIELDS))
  })
})
