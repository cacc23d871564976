// The suites whose cases use several queues, groups or runs, and the random programs, which every broker must pass, on BullMQ.
import { brokerConformance, brokerModel } from '@bullpen/testing'
import { inject } from 'vitest'
import { keepRenewalThread, openBullmq } from './backend.fixture.ts'

keepRenewalThread(inject('redisUrl'))
brokerConformance('BullMQ', openBullmq, { only: ({ within }) => within === 'several slots' })
brokerModel('BullMQ', openBullmq, { time: 'real', seeds: { small: 20, full: 1_000 }, atOnce: 10 })
