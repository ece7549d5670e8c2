//! The service: maps paths to methods, as generated code for `proto/rewardpool.proto` would.

use super::drawing::answers;
use super::messages::{DrawRequest, DrawResponse, GetStateRequest, GetStateResponse};
use super::state::state;
use crate::shared::Shared;
use axum::http;
use futures_util::Stream;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::{Grpc, NamedService, StreamingService, UnaryService};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Service that draws from the pools of a server.
#[derive(Clone)]
pub(super) struct RewardPoolService(pub(super) Arc<Shared>);

impl NamedService for RewardPoolService {
    const NAME: &'static str = "rewardpool.RewardPoolService";
}

impl Service<http::Request<Body>> for RewardPoolService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/rewardpool.RewardPoolService/GetState" => {
                    Grpc::new(ProstCodec::default()).unary(GetState(shared), request).await
                }
                "/rewardpool.RewardPoolService/Draw" => {
                    Grpc::new(ProstCodec::default()).streaming(Draw(shared), request).await
                }
                _ => Status::unimplemented("the service has the methods GetState and Draw").into_http(),
            })
        })
    }
}

struct GetState(Arc<Shared>);

impl UnaryService<GetStateRequest> for GetState {
    type Response = GetStateResponse;
    type Future = BoxFuture<Result<Response<GetStateResponse>, Status>>;

    fn call(&mut self, request: Request<GetStateRequest>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        Box::pin(async move { state(&shared, request.get_ref()).await.map(Response::new) })
    }
}

struct Draw(Arc<Shared>);

impl StreamingService<DrawRequest> for Draw {
    type Response = DrawResponse;
    type ResponseStream = Pin<Box<dyn Stream<Item = Result<DrawResponse, Status>> + Send>>;
    type Future = std::future::Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<DrawRequest>>) -> Self::Future {
        let answers: Self::ResponseStream = Box::pin(answers(Arc::clone(&self.0), request.into_inner()));
        std::future::ready(Ok(Response::new(answers)))
    }
}
