// Tests how the figures of several runs are merged.
import { expect, it } from 'vitest'
import type { Figures } from '../figures/figures.ts'
import { mergedFigures } from './merged-figures.ts'

const figures = (more: Partial<Figures>): Figures => more as Figures

it('numbers are added, and of times the longest counts', () => {
  expect(mergedFigures([figures({ accepted: 3, errorsEndMs: 9 }), figures({ accepted: 4, errorsEndMs: 5 })])).toEqual({
    accepted: 7,
    errorsEndMs: 9,
  })
})

it('a figure that a run has not measured is not measured, so that it misses its limit', () => {
  expect(mergedFigures([figures({ lost: 0 }), figures({ lost: undefined as never })]).lost).toBeUndefined()
})
