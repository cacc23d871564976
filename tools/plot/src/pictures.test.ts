// Tests the pictures of the main panels: what they ask Prometheus, what they show, and that the committed ones are of today's panels.
import { readFileSync } from 'node:fs'
import { withAllChosen } from '@bullpen/telemetry/dashboards'
import { expect, it } from 'vitest'
import { draw, PICTURES, panelOf, RATE_INTERVAL, type RangeSeries } from './pictures.ts'

it.each(PICTURES)(
  'the committed picture $name shows its panels (if this fails: npm run pictures)',
  ({ name, title, panels }) => {
    const svg = readFileSync(new URL(`../../../docs/how-to/plots/${name}.svg`, import.meta.url), 'utf8')
    for (const text of [title, ...panels]) expect(svg).toContain(`>${text}</text>`)
  },
)

it('a picture asks the queries of its panels, and shows the legends and the names of states', async () => {
  const asked: string[] = []
  const ask = async (query: string): Promise<readonly RangeSeries[]> => {
    asked.push(query)
    return [
      {
        metric: { state: 'DONE_ERROR', queue: 'mail' },
        values: [
          [100, '1'],
          [105, 'NaN'],
          [110, '2'],
        ],
      },
    ]
  }
  const panels = ['Attempts ended by state', 'Oldest task of each queue']
  const svg = await draw({ name: 'x', title: 'Two panels', panels }, 90, ask)
  expect(asked).toEqual(
    panels.flatMap((title) => panelOf(title).queries.map(({ expr }) => withAllChosen(expr, RATE_INTERVAL))),
  )
  for (const text of [...panels, 'failed', 'mail', 'per second', 's']) expect(svg).toContain(`>${text}</text>`)
  expect(svg).not.toContain('NaN')
  // The first point is 10 s after the start of the picture, and the last one 20 s.
  for (const tick of ['0', '20']) expect(svg).toContain(`>${tick}</text>`)
})

it('a panel that no dashboard has is refused', () => {
  expect(() => panelOf('No such panel')).toThrow("no dashboard has a panel 'No such panel'")
})
