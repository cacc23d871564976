// Reserves an item and charges for it, and releases the item if the payment fails. The faulty handler reserves another item in each
// attempt, and a crash leaves the first one reserved.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const order = defineTask({ name: 'order.place', queue: 'orders', input: z.object({ sku: z.string() }) })
const input = { sku: 'chair' }

const resources = () => {
  let reservations = 0
  return {
    stock: {
      reserve: effect(async (_sku: string, key?: string) => key ?? `reservation-${++reservations}`, {
        deduplicatedBy: (_sku, key) => key,
      }),
      release: effect(async (_reservation: string) => {}, { undoes: (reservation) => reservation }),
    },
    bank: {
      charge: effect(async (_sku: string, _key: string, _signal: AbortSignal) => {}, {
        deduplicatedBy: (_sku, key) => key,
      }),
    },
  }
}

type Context = TaskContext<typeof order, ReturnType<typeof resources>>

interface Variant {
  readonly keyOf: (id: string) => string | undefined
  readonly releasesWhenSignalled: boolean
}

const handlerOf = ({ keyOf, releasesWhenSignalled }: Variant) =>
  defineHandler(order, import.meta.url, async ({ id, input, signal, resources: { stock, bank } }: Context) => {
    const reservation = await stock.reserve(input.sku, keyOf(id))
    try {
      await bank.charge(input.sku, `charge ${id}`, signal)
    } catch (error) {
      // After an interruption, the task runs again and needs the reservation.
      if (releasesWhenSignalled || !signal.aborted) await stock.release(reservation)
      throw error
    }
  })

const faulty = handlerOf({ keyOf: () => undefined, releasesWhenSignalled: true })
const late = handlerOf({ keyOf: (id) => `reserve ${id}`, releasesWhenSignalled: true })
const idempotent = handlerOf({ keyOf: (id) => `reserve ${id}`, releasesWhenSignalled: false })

export const compensationFault: PlantedFault = {
  name: 'a reservation that a crash leaves behind',
  faulty: () => simulate(faulty, input, { resources }),
  idempotent: (options) => simulate(idempotent, input, { resources, ...options }),
  faults: [{ kind: 'repeated', effect: 'stock.reserve("chair")', foundBy: ['crash', 'drain', 'timeout', 'lock_lost'] }],
}

/** An attempt that has lost its lock releases the item that the next attempt has reserved with the same key. */
export const lateCompensation = (options?: { readonly pairs: boolean }) =>
  simulate(late, input, { resources, ...options })
