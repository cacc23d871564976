// Tests what a picture contains.
import { expect, it } from 'vitest'
import { drawTimeSeries } from './index.ts'

const series = (name: string, values: readonly number[], everyS = 1) => ({
  name,
  points: values.map((value, i) => ({ at: 1_700_000_000 + i * everyS, value })),
})

const linesIn = (svg: string): number => svg.match(/aria-roledescription="line mark"/g)?.length ?? 0

it('a picture has a line for each series, below the titles of its panels and beside their units', async () => {
  const svg = await drawTimeSeries({
    title: 'A burst',
    panels: [
      { title: 'Backlog', unit: 'tasks', series: [series('waiting', [0, 9, 4]), series('active', [1, 2, 2])] },
      { title: 'Latency', unit: 'ms', series: [series('p99', [5, 6, 7])] },
    ],
  })
  expect(svg).toMatch(/^<svg [\s\S]*<\/svg>\n$/)
  for (const text of ['A burst', 'Backlog', 'tasks', 'waiting', 'active', 'Latency', 'ms', 'p99']) {
    expect(svg).toContain(`>${text}</text>`)
  }
  expect(linesIn(svg)).toBe(3)
})

it.each([
  ['s', 80],
  ['min', 200],
])('time begins at 0 and is in %s if there is a point every %d s', async (unit, everyS) => {
  const svg = await drawTimeSeries({
    title: 'Time',
    panels: [{ unit: 'tasks', series: [series('waiting', [1, 2, 3, 4], everyS)] }],
  })
  expect(svg).toContain(`>${unit}</text>`)
  expect(svg).toContain('>0</text>')
  expect(svg).not.toContain('1700000')
  expect(svg, 'numbers are written out').not.toContain('e+')
})
