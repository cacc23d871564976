// Tests how the figures of several runs are merged.
import { expect, it } from 'vitest'
import type { Figures } from '../figures/figures.ts'
import { mergedFigures } from './merged-figures.ts'

const figures = (more: Partial<Figures>): Figures => more as Figures

it('counts are added, and the longest of the times is kept', () => {
  expect(mergedFigures([figures({ accepted: 3, errorsEndMs: 9 }), figures({ accepted: 4, errorsEndMs: 5 })])).toEqual({
    accepted: 7,
    errorsEndMs: 9,
  })
})

it('a figure that one run has not measured counts as not measured, so it misses its limit', () => {
  expect(mergedFigures([figures({ lost: 0 }), figures({ lost: undefined as never })]).lost).toBeUndefined()
})
