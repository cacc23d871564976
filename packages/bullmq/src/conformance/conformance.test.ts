// The suites whose cases use one queue, which every broker must pass, on BullMQ.
import { brokerConformance } from '@bullpen/testing'
import { inject } from 'vitest'
import { keepRenewalThread, openBullmq } from './backend.fixture.ts'

keepRenewalThread(inject('redisUrl'))
brokerConformance('BullMQ', openBullmq, { only: ({ within }) => within === 'one queue' })
